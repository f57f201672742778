"""Networks built with torch and random weights, for the agreement of frontends. Layouts are the published ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own idiom

from graphcost.frontends.torch.libraries import import_transformers

Built = tuple[nn.Module, tuple[Any, ...]]
IMAGE = (1, 3, 224, 224)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.down: nn.Module = nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.down = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.down(x))


def resnet50() -> Built:
    """He et al. 2015, stride in the 3x3 convolution."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for index in range(count):
            width = 64 * 2**stage
            layers.append(Bottleneck(inputs, width, 2 if stage and not index else 1))
            inputs = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*layers), (torch.zeros(IMAGE),)


class Inverted(nn.Module):
    """Expand, depthwise, project."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers += [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        layers += [
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
        ]
        layers += [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.body = nn.Sequential(*layers)
        self.add = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        return x + self.body(x) if self.add else self.body(x)


def mobilenet_v2() -> Built:
    """Sandler et al. 2018."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    inputs = 32
    table = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    for expansion, outputs, count, stride in table:
        for index in range(count):
            layers.append(Inverted(inputs, outputs, 1 if index else stride, expansion))
            inputs = outputs
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1280, 1000)), (torch.zeros(IMAGE),)


def vgg16() -> Built:
    """Simonyan and Zisserman 2014."""
    layers: list[nn.Module] = []
    inputs = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
            inputs = width
        layers.append(nn.MaxPool2d(2, 2))
    layers += [
        nn.Flatten(),
        nn.Linear(25088, 4096),
        nn.ReLU(),
        nn.Linear(4096, 4096),
        nn.ReLU(),
        nn.Linear(4096, 1000),
    ]
    return nn.Sequential(*layers), (torch.zeros(IMAGE),)


def bert_base() -> Built:
    """transformers' BertModel at 128 tokens."""
    t = import_transformers()
    ids = torch.zeros(1, 128, dtype=torch.long)
    return t.BertModel(t.BertConfig()), (ids, torch.ones_like(ids), torch.zeros_like(ids))


def gpt2() -> Built:
    """transformers' GPT2LMHeadModel, two layers, at 64 tokens."""
    t = import_transformers()
    return t.GPT2LMHeadModel(t.GPT2Config(n_layer=2, use_cache=False)), (torch.zeros(1, 64, dtype=torch.long),)


class LstmTagger(nn.Module):
    """Embedding, two bidirectional LSTM layers, a tag per token."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 64)
        self.lstm = nn.LSTM(64, 128, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(256, 20)

    def forward(self, ids: Any) -> Any:
        return self.head(self.lstm(self.table(ids))[0])


def lstm_tagger() -> Built:
    """Tokens to tags."""
    return LstmTagger(), (torch.zeros(1, 30, dtype=torch.long),)


class CrossAttention(nn.Module):
    """A one-layer encoder and decoder with cross-attention, written out."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.encode = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.source, self.target = nn.Embedding(100, width), nn.Embedding(100, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, 100)

    def _attend(self, layers: Any, queries: Any, keys: Any) -> Any:
        batch, width = queries.shape[0], queries.shape[2]

        def split(x: Any) -> Any:
            return x.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(layers[0](queries)), split(layers[1](keys)), split(layers[2](keys))
        y = F.scaled_dot_product_attention(q, k, v)
        return layers[3](y.transpose(1, 2).reshape(batch, -1, width))

    def forward(self, source: Any, target: Any) -> Any:
        memory = self.source(source)
        memory = self.norms[0](memory + self._attend(self.encode, memory, memory))
        x = self.target(target)
        return self.head(self.norms[1](x + self._attend(self.cross, x, memory)))


def encoder_decoder() -> Built:
    """24 source and 10 target tokens."""
    return CrossAttention(), (torch.zeros(1, 24, dtype=torch.long), torch.zeros(1, 10, dtype=torch.long))


class Dlrm(nn.Module):
    """Naumov et al. 2019: dense features, tables, pairwise products, a top network."""

    def __init__(self, tables: int = 6, rows: int = 5000, width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear((tables + 1) ** 2 + width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense: Any, sparse: Any) -> Any:
        x = self.bottom(dense)
        vectors = torch.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, pairs], 1)).sigmoid()


def dlrm() -> Built:
    """A batch of eight."""
    return Dlrm(), (torch.zeros(8, 13), torch.zeros(8, 6, dtype=torch.long))


class Gated(nn.Module):
    """A small convolutional network whose second half depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.wide, self.narrow = nn.Conv2d(8, 32, 3, padding=1), nn.Conv2d(8, 32, 1)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.stem(x))

        def wide(x: Any) -> Any:
            return self.wide(x)

        def narrow(x: Any) -> Any:
            return self.narrow(x)

        return torch.cond(x.mean() > 0, wide, narrow, (x,))


def gated_cnn() -> Built:
    """32 x 32 images."""
    return Gated(), (torch.zeros(1, 3, 32, 32),)


MODELS: dict[str, Callable[[], Built]] = {
    "resnet50": resnet50,
    "mobilenet-v2": mobilenet_v2,
    "vgg16": vgg16,
    "bert-base": bert_base,
    "gpt2 (2 layers)": gpt2,
    "lstm tagger": lstm_tagger,
    "encoder-decoder": encoder_decoder,
    "dlrm": dlrm,
    "gated cnn": gated_cnn,
}
