"""Eight small torch models that train on a CPU in milliseconds, with their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Built = tuple[nn.Module, tuple[Any, ...]]


def mlp() -> Built:
    """784-512-512-10, batch 64."""
    layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(*layers), (torch.randn(64, 784),)


def lenet() -> Built:
    """Two convolutions with pooling and two linear layers, 32 images of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 10),
    ), (torch.randn(32, 1, 28, 28),)  # fmt: skip


class _Residual(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))
        self.short = nn.Conv2d(cin, cout, 1, stride, bias=False) if (cin, stride) != (cout, 1) else nn.Identity()

    def forward(self, x: Any) -> Any:
        return torch.relu(self.second(self.first(x)) + self.short(x))


def resnet() -> Built:
    """A residual network of six blocks, 16 images of 32 x 32."""
    widths = ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        *(_Residual(*one) for one in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ), (torch.randn(16, 3, 32, 32),)  # fmt: skip


def mobilenet() -> Built:
    """Depthwise separable convolutions, 16 images of 32 x 32."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    for cin, cout, stride in ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 192, 2)):
        layers += [nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), nn.BatchNorm2d(cin), nn.ReLU()]
        layers += [nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 10)]
    return nn.Sequential(*layers), (torch.randn(16, 3, 32, 32),)


class _Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5000, 64)
        self.cells = nn.LSTM(64, 128, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(256, 20)

    def forward(self, ids: Any) -> Any:
        return self.tags(self.cells(self.words(ids))[0])


def tagger() -> Built:
    """A bidirectional LSTM over word vectors, 16 sentences of 32 words."""
    return _Tagger(), (torch.randint(0, 5000, (16, 32)),)


class _Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(128, 128) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(128) for _ in range(2))
        self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape

        def heads(y: Any) -> Any:
            return y.view(batch, tokens, 4, width // 4).transpose(1, 2)

        q, k, v = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, -1)
        x = self.norms[0](x + self.out((scores @ v).transpose(1, 2).reshape(batch, tokens, width)))
        return self.norms[1](x + self.down(nn.functional.gelu(self.up(x))))


def transformer() -> Built:
    """Two encoder layers of width 128, 8 sequences of 64 vectors."""
    return nn.Sequential(_Encoder(), _Encoder(), nn.Linear(128, 32)), (torch.randn(8, 64, 128),)


class _Ranking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(2000, 32) for _ in range(6))
        self.dense = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(7 * 32, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, numbers: Any, ids: Any) -> Any:
        rows = [table(ids[:, index]) for index, table in enumerate(self.tables)]
        return self.top(torch.cat([self.dense(numbers), *rows], 1))


def ranking() -> Built:
    """Six lookup tables and two perceptrons, batch 256."""
    return _Ranking(), (torch.randn(256, 13), torch.randint(0, 2000, (256, 6)))


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def block(cin: int, cout: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(cin, cout, 3, 1, 1), nn.ReLU(), nn.Conv2d(cout, cout, 3, 1, 1), nn.ReLU())

        self.down1, self.down2, self.middle = block(1, 16), block(16, 32), block(32, 64)
        self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.join2, self.join1 = block(64, 32), block(32, 16)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: Any) -> Any:
        pool = nn.functional.max_pool2d
        first = self.down1(x)
        second = self.down2(pool(first, 2))
        x = self.up2(self.middle(pool(second, 2)))
        x = self.up1(self.join2(torch.cat([x, second], 1)))
        return self.out(self.join1(torch.cat([x, first], 1)))


def unet() -> Built:
    """A U-Net of two levels, 4 images of 64 x 64."""
    return _UNet(), (torch.randn(4, 1, 64, 64),)


SMALL_MODELS: dict[str, Callable[[], Built]] = {
    "mlp": mlp, "lenet": lenet, "resnet": resnet, "mobilenet": mobilenet, "lstm tagger": tagger,
    "transformer": transformer, "ranking": ranking, "u-net": unet,
}  # fmt: skip
