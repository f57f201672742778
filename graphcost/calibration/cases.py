"""What is timed: single layers of growing size, so that every operator class gets a curve of rate over work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """A layer and an input for it (``build`` makes both); ``floats``: the input itself has a gradient."""

    name: str
    build: Callable[[], tuple[Any, Any]]
    floats: bool = True


LINEAR = (
    (1, 64, 64), (16, 64, 16), (16, 64, 64), (256, 32, 16), (32, 128, 256), (512, 64, 32), (32, 512, 512),
    (512, 128, 128), (128, 256, 1024), (64, 1024, 1024), (512, 512, 512),
    (256, 1024, 1024), (1024, 512, 2048), (2048, 1024, 1024),
)  # fmt: skip
"""(rows, features in, features out)."""

PRODUCTS = (
    (8, 16, 16, 16), (16, 32, 16, 32), (32, 64, 32, 64), (32, 64, 64, 32), (32, 128, 64, 128), (32, 128, 128, 64),
    (96, 128, 64, 128), (96, 128, 128, 64),
)  # fmt: skip
"""(batch, rows, inner, columns): as attention's scores and their product with the values."""

CONVOLUTIONS = (
    (1, 8, 8, 3, 1, 8), (8, 16, 32, 3, 1, 8), (8, 16, 16, 3, 1, 16), (8, 32, 32, 3, 1, 16), (16, 16, 16, 3, 1, 32),
    (16, 64, 64, 3, 1, 16), (4, 32, 16, 3, 1, 64), (16, 128, 128, 3, 1, 8), (32, 64, 64, 3, 1, 32),
    (16, 256, 256, 3, 1, 14),
    (8, 16, 32, 3, 2, 16), (16, 32, 64, 3, 2, 32), (8, 64, 128, 3, 2, 28), (16, 128, 256, 3, 2, 28),
    (4, 16, 16, 1, 1, 16), (16, 32, 32, 1, 1, 16), (16, 64, 128, 1, 1, 16), (8, 256, 64, 1, 1, 28),
    (16, 128, 512, 1, 1, 28),
    (16, 16, 32, 1, 2, 32), (16, 64, 128, 1, 2, 28), (16, 256, 512, 1, 2, 14),
    (4, 1, 16, 3, 1, 28), (16, 3, 16, 3, 1, 32), (16, 3, 32, 5, 1, 32), (8, 3, 64, 7, 2, 112),
)  # fmt: skip
"""(batch, channels in, channels out, kernel, stride, height and width): square, strided, 1 x 1, of images."""

TRANSPOSED = ((2, 32, 16, 16), (4, 64, 32, 16), (8, 64, 64, 28))
"""(batch, channels in, channels out, height and width) of windows and strides of 2."""

DEPTHWISE = (
    (4, 16, 1, 8), (8, 32, 1, 16), (16, 32, 1, 32), (16, 96, 1, 16), (16, 96, 1, 32), (32, 144, 1, 56),
    (8, 32, 2, 16), (16, 64, 2, 32), (16, 144, 2, 56),
)  # fmt: skip
"""(batch, channels, stride, height and width)."""

ROWS = ((1, 64), (16, 64), (64, 128), (256, 256), (1024, 256), (2048, 512), (4096, 1024), (8192, 2048))
"""(rows, width) of tensors from 256 B to 67 MB."""

IMAGES = ((1, 8, 8), (8, 16, 16), (16, 32, 16), (16, 16, 32), (16, 64, 32), (32, 64, 56), (32, 128, 56))
"""(batch, channels, height and width)."""

TABLES = ((32, 100, 16), (256, 1000, 32), (512, 4000, 64), (4096, 10_000, 64), (16_384, 30_000, 256))
"""(lookups, rows, width)."""

CELLS = (
    (4, 8, 32, 32), (16, 16, 64, 64), (8, 32, 128, 128), (32, 32, 128, 128), (16, 32, 128, 256), (32, 32, 256, 512),
)  # fmt: skip
"""(batch, steps, features, hidden)."""

LAYERS = ("relu", "gelu", "sigmoid", "add", "scale", "copy", "order", "mean", "softmax", "layer norm")
POOLS = ("batch norm", "max pool", "average pool")


def cases() -> Iterator[Case]:
    """Every layer to time, small before large within a kind. Building one needs torch."""
    for name, build, sizes in (
        ("linear", _linear, LINEAR), ("product", _product, PRODUCTS), ("conv", _conv, CONVOLUTIONS),
        ("transposed", _transposed, TRANSPOSED), ("depthwise", _depthwise, DEPTHWISE), ("lstm", _cells, CELLS),
    ):  # fmt: skip
        for size in sizes:
            yield Case(f"{name} {'x'.join(map(str, size))}", partial(build, *size))
    for layer in LAYERS:
        for rows, width in ROWS[1:] if layer == "order" else ROWS:  # one row has no order
            yield Case(f"{layer} {rows}x{width}", partial(_rows, layer, rows, width))
    for layer in POOLS:
        for batch, channels, side in IMAGES:
            yield Case(f"{layer} {batch}x{channels}x{side}", partial(_image, layer, batch, channels, side))
    for count, table, width in TABLES:
        yield Case(f"embedding {count} of {table}x{width}", partial(_embedding, count, table, width), floats=False)


def _linear(rows: int, width: int, out: int) -> tuple[Any, Any]:
    import torch

    return torch.nn.Linear(width, out), torch.randn(rows, width)


def _product(batch: int, rows: int, inner: int, columns: int) -> tuple[Any, Any]:
    import torch

    class Product(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.right = torch.nn.Parameter(torch.randn(batch, inner, columns))

        def forward(self, x: Any) -> Any:
            return x @ self.right

    return Product(), torch.randn(batch, rows, inner)


def _conv(batch: int, cin: int, cout: int, kernel: int, stride: int, size: int) -> tuple[Any, Any]:
    import torch

    return torch.nn.Conv2d(cin, cout, kernel, stride, kernel // 2), torch.randn(batch, cin, size, size)


def _transposed(batch: int, cin: int, cout: int, size: int) -> tuple[Any, Any]:
    import torch

    return torch.nn.ConvTranspose2d(cin, cout, 2, 2), torch.randn(batch, cin, size, size)


def _depthwise(batch: int, channels: int, stride: int, size: int) -> tuple[Any, Any]:
    import torch

    layer = torch.nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False)
    return layer, torch.randn(batch, channels, size, size)


def _cells(batch: int, steps: int, width: int, hidden: int) -> tuple[Any, Any]:
    import torch

    class Cells(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(width, hidden, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0]

    return Cells(), torch.randn(batch, steps, width)


def _rows(layer: str, rows: int, width: int) -> tuple[Any, Any]:
    import torch
    from torch import nn

    class Call(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self, result: Callable[..., Any]) -> None:
            super().__init__()
            self.result = result

        def forward(self, x: Any) -> Any:
            return self.result(x)

    class Beside(nn.Module):  # type: ignore[misc, unused-ignore]
        """The result of the input and of a parameter of the same size."""

        def __init__(self, result: Callable[..., Any]) -> None:
            super().__init__()
            self.result = result
            self.other = nn.Parameter(torch.randn(rows, width))

        def forward(self, x: Any) -> Any:
            return self.result(x, self.other)

    builders: dict[str, Callable[[], Any]] = {
        "relu": nn.ReLU, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "softmax": partial(nn.Softmax, -1),
        "layer norm": partial(nn.LayerNorm, width), "mean": partial(Call, partial(torch.mean, dim=0)),
        "copy": partial(Beside, _joined), "order": partial(Call, _turned), "add": partial(Beside, torch.add),
        "scale": partial(Call, _scaled),
    }  # fmt: skip
    return builders[layer](), torch.randn(rows, width)


def _joined(x: Any, other: Any) -> Any:
    import torch

    return torch.cat((x, other))


def _turned(x: Any) -> Any:
    """As attention brings its heads to the front."""
    return x.view(x.shape[0], 4, -1).transpose(0, 1).contiguous()


def _scaled(x: Any) -> Any:
    return x / 8


def _image(layer: str, batch: int, channels: int, size: int) -> tuple[Any, Any]:
    import torch
    from torch import nn

    made = {
        "batch norm": partial(nn.BatchNorm2d, channels), "max pool": partial(nn.MaxPool2d, 2),
        "average pool": partial(nn.AdaptiveAvgPool2d, 1),
    }[layer]()  # fmt: skip
    return made, torch.randn(batch, channels, size, size)


def _embedding(count: int, table: int, width: int) -> tuple[Any, Any]:
    import torch

    return torch.nn.Embedding(table, width), torch.randint(0, table, (count,))
