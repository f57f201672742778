"""Ten networks for a training step on a GPU: (batch, builder of a module and its inputs), no library but torch.

``scale`` 0 makes each a miniature of the same kind, for a dry run on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own idiom

from benchmarks.agreement_models import Built, mobilenet_v2, resnet50, vgg16
from benchmarks.small_models import SMALL_MODELS


@dataclass(frozen=True, slots=True)
class Subject:
    """A network and how it is trained here; ``mini`` is what stands for it in a dry run."""

    batch: int
    build: Callable[[int], Built]
    mini: str
    layout: str = "nchw"


class Block(nn.Module):
    """A transformer layer with torch's own attention function; ``causal`` for decoders."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Language(nn.Module):
    """Token and position embeddings, blocks, and logits over the vocabulary."""

    def __init__(self, width: int, heads: int, layers: int, tokens: int, vocabulary: int, *, causal: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.register_buffer("index", torch.arange(tokens))
        self.blocks = nn.Sequential(*(Block(width, heads, causal) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Any) -> Any:
        return self.head(self.norm(self.blocks(self.words(ids) + self.places(self.index))))


class Vision(nn.Module):
    """ViT: patches of 16 x 16, blocks, the mean of the tokens."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(*(Block(width, heads, False) for _ in range(layers)))
        self.head = nn.Linear(width, 1000)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class Words(nn.Module):
    """A two-layer LSTM language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cells = nn.Embedding(33_278, 650), nn.LSTM(650, 650, 2, batch_first=True)
        self.head = nn.Linear(650, 33_278)

    def forward(self, ids: Any) -> Any:
        return self.head(self.cells(ids if ids.is_floating_point() else self.words(ids))[0])


def _tokens(batch: int, tokens: int, vocabulary: int) -> tuple[Any, ...]:
    return (torch.randint(0, vocabulary, (batch, tokens)),)


def _images(made: Built, batch: int) -> Built:
    return made[0], (torch.randn(batch, 3, 224, 224),)


SUBJECTS: dict[str, Subject] = {
    "resnet50": Subject(128, lambda n: _images(resnet50(), n), "resnet"),
    "resnet50 channels-last": Subject(128, lambda n: _images(resnet50(), n), "resnet", "channels-last"),
    "resnet50 batch 8": Subject(8, lambda n: _images(resnet50(), n), "resnet"),
    "vgg16": Subject(64, lambda n: _images(vgg16(), n), "lenet"),
    "mobilenet-v2": Subject(128, lambda n: _images(mobilenet_v2(), n), "mobilenet"),
    "vit-b-16": Subject(64, lambda n: (Vision(768, 12, 12), (torch.randn(n, 3, 224, 224),)), "transformer"),
    "bert-base-like": Subject(
        32, lambda n: (Language(768, 12, 12, 128, 30_522, causal=False), _tokens(n, 128, 30_522)), "transformer"
    ),
    "gpt2-like": Subject(
        4, lambda n: (Language(768, 12, 12, 1024, 50_257, causal=True), _tokens(n, 1024, 50_257)), "transformer"
    ),
    "lstm language model": Subject(64, lambda n: (Words(), _tokens(n, 35, 33_278)), "lstm tagger"),
    "u-net": Subject(16, lambda n: (SMALL_MODELS["u-net"]()[0], (torch.randn(n, 1, 512, 512),)), "u-net"),
}
"""What is trained: ten networks of different kinds, sizes and batches."""
