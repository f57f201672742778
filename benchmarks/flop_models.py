"""Networks beside those of ``agreement_models`` that torch's counter is asked about: twelve and more in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own idiom

from benchmarks.agreement_models import IMAGE, MODELS, Built
from graphcost.frontends.torch.libraries import import_transformers


def vit() -> Built:
    """transformers' ViT-B/16 classifier, 197 tokens."""
    t = import_transformers()
    return t.ViTForImageClassification(t.ViTConfig(num_labels=1000)), (torch.zeros(IMAGE),)


def albert() -> Built:
    """transformers' ALBERT-base at 128 tokens: one layer's weights used twelve times."""
    t = import_transformers()
    sizes = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
    return t.AlbertModel(t.AlbertConfig(**sizes)), (torch.zeros(1, 128, dtype=torch.long),)


class T5(nn.Module):
    """transformers' T5 with the decoder's tokens as its second argument; only the logits come out."""

    def __init__(self) -> None:
        super().__init__()
        t = import_transformers()
        sizes = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
        self.net = t.T5ForConditionalGeneration(t.T5Config(**sizes, use_cache=False))

    def forward(self, source: Any, target: Any) -> Any:
        return self.net(input_ids=source, decoder_input_ids=target).logits


def t5_small() -> Built:
    """32 source and 16 target tokens."""
    return T5(), (torch.zeros(1, 32, dtype=torch.long), torch.zeros(1, 16, dtype=torch.long))


def mixtral() -> Built:
    """transformers' Mixtral, four layers of eight experts, two a token, at 32 tokens."""
    t = import_transformers()
    sizes = {
        "hidden_size": 256, "num_hidden_layers": 4, "num_local_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 32000, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688,
    }  # fmt: skip
    return t.MixtralForCausalLM(t.MixtralConfig(**sizes, use_cache=False)), (torch.zeros(1, 32, dtype=torch.long),)


class UNet(nn.Module):
    """Ronneberger et al. 2015 with three levels: transposed convolutions upwards, skips across."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        widths = (width, 2 * width, 4 * width)
        self.down = nn.ModuleList(self._block(a, b) for a, b in zip((3, *widths), widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[1::-1])
        self.merge = nn.ModuleList(self._block(2 * w, w) for w in widths[1::-1])
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _block(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()
        )

    def forward(self, x: Any) -> Any:
        skips = []
        for index, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if index else x)
            skips.append(x)
        for skip, up, merge in zip(skips[1::-1], self.up, self.merge, strict=True):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


def unet() -> Built:
    """64 x 64 images, a batch of two."""
    return UNet(), (torch.zeros(2, 3, 64, 64),)


class Speech(nn.Module):
    """Grouped 1-d convolutions and a GRU in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(40, 64, 5, stride=2, padding=2, groups=4)
        self.gru = nn.GRU(64, 48, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(96, 30)

    def forward(self, x: Any) -> Any:
        return self.head(self.gru(F.relu(self.conv(x)).transpose(1, 2))[0])


def speech() -> Built:
    """100 frames, a batch of two."""
    return Speech(), (torch.zeros(2, 40, 100),)


COUNTED: dict[str, Callable[[], Built]] = {
    **MODELS,
    "vit-b-16": vit,
    "t5-small": t5_small,
    "albert-base": albert,
    "u-net": unet,
    "gru speech": speech,
    "mixtral (4 layers)": mixtral,
}
"""Fifteen networks; the first nine are those of ``agreement``."""
