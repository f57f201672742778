"""Ronneberger, Fischer and Brox: U-Net (2015), as NVIDIA's medical and industrial examples build it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTHS = (64, 128, 256, 512)
INDUSTRIAL = "TensorFlow/Segmentation/UNet_Industrial"


def _pair(b: Builder, x: str, first: int, second: int, pad: int) -> str:
    x = b.relu(b.conv(x, first, 3, pad=pad, bias=True, name="conv1"))
    return b.relu(b.conv(x, second, 3, pad=pad, bias=True, name="conv2"))


def _cropped(b: Builder, x: str, like: str) -> str:
    """The middle of ``x``, as large as ``like``."""
    n, c, side, _ = b.shape(x)
    wanted = b.shape(like)[2]
    start = (side - wanted) // 2
    bounds = {"starts": (start, start), "ends": (start + wanted, start + wanted), "axes": (2, 3)}
    slots = [b.integers(f"crop.{name}", values) for name, values in bounds.items()]
    return b.op("Slice", [x, *slots], (n, c, wanted, wanted), name="crop")


def medical(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Unpadded 3x3 convolutions, skips cropped to what they join; the result is smaller than the image."""
    x = b.input("image", (batch, 1, dims["image"], dims["image"]))
    skips = []
    for index, width in enumerate(WIDTHS):
        with b.scope("down", index):
            x = _pair(b, x, width, width, 0)
        skips.append(x)
        x = b.max_pool(x, 2, 2)
    with b.scope("bottleneck"):
        x = b.dropout(_pair(b, x, 1024, 1024, 0), 0.5)
        x = b.relu(b.conv_transpose(x, 512, 3, stride=2, pad=1, out_pad=1))
    for index, width in enumerate(reversed(WIDTHS)):
        with b.scope("up", index):
            x = _pair(b, b.concat(x, _cropped(b, skips.pop(), x)), width, width, 0)
            if width > WIDTHS[0]:
                x = b.relu(b.conv_transpose(x, width // 2, 3, stride=2, pad=1, out_pad=1))
    return b.finish(b.conv(x, 2, 1, bias=True, name="out"))


@dataclass(frozen=True)
class Industrial:
    """Channels of the first level, of the levels below it, of the narrowest part, of the last pair."""

    first: int
    below: tuple[int, ...]
    narrowest: int
    last: int

    def params(self, *, halved: bool = True) -> int:
        """Convolutions with biases; on the way up, ``halved`` blocks end in half their channels.

        The example's code halves them. The totals in its comments, 36,950,273 beside the original, do not:
        ``halved=False`` gives exactly that.
        """

        def pair(*widths: int) -> int:
            return sum((9 * i + 1) * o for i, o in pairwise(widths))

        def up(i: int, o: int) -> int:
            return (4 * i + 1) * o

        part = 2 if halved else 1
        levels = (self.first, *self.below)
        total = pair(1, self.first, self.first) + sum(pair(i, o, o) for i, o in pairwise(levels))
        total += pair(levels[-1], self.narrowest, self.narrowest) + up(self.narrowest, self.narrowest // part)
        arriving = self.narrowest // part
        for width in reversed(self.below):
            half = width // part
            total += pair(arriving + width, width, half) + up(half, half)
            arriving = half
        return total + pair(arriving + self.first, self.last, self.last) + self.last + 1


def _upscaled(b: Builder, x: str, channels: int) -> str:
    """Nearest neighbour in channels-last order (TensorFlow has no other), then 2x2 on the larger grid."""
    n, c, side, _ = b.shape(x)
    x = b.transpose(x, (0, 2, 3, 1))
    shape = (n, 2 * side, 2 * side, c)
    x = b.op("Resize", [x, "", "", b.integers(f"sizes_{b.count()}", shape)], shape, mode="nearest")
    return b.relu(b.conv(b.transpose(x, (0, 3, 1, 2)), channels, 2, pad_end=1, bias=True, name="up"))


def industrial(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Industrial) -> Model:
    """Padded 3x3 convolutions; on the way up, the second of every pair and the upscaling halve the channels."""
    if dims["image"] % 16:
        raise b.refuse("image", dims["image"], "multiples of 16, the stride of its narrowest part")
    x = b.input("image", (batch, 1, dims["image"], dims["image"]))
    skips = []
    for index, width in enumerate((shape.first, *shape.below)):
        with b.scope("down", index):
            x = _pair(b, x, width, width, 1)
        skips.append(x)
        x = b.max_pool(x, 2, 2)
    with b.scope("bottleneck"):
        x = _upscaled(b, _pair(b, x, shape.narrowest, shape.narrowest, 1), shape.narrowest // 2)
    for index, width in enumerate(reversed(shape.below)):
        with b.scope("up", index):
            x = _upscaled(b, _pair(b, b.concat(x, skips.pop()), width, width // 2, 1), width // 2)
    with b.scope("out"):
        x = _pair(b, b.concat(x, skips.pop()), shape.last, shape.last, 1)
        return b.finish(b.pointwise("Sigmoid", b.conv(x, 1, 1, bias=True)))


def _medical_params() -> int:
    """Convolutions with biases; four pairs down, the deepest of 1024 channels, four up, two classes."""
    widths = (1, *WIDTHS, 1024)
    total = sum((9 * i + 1) * o + (9 * o + 1) * o for i, o in pairwise(widths))
    for width in WIDTHS:
        total += (9 * 2 * width + 1) * width + (9 * width + 1) * width + (9 * 2 * width + 1) * width
    return total + (64 + 1) * 2


TINY, ORIGINAL = Industrial(32, (32, 64, 128), 256, 32), Industrial(64, (128, 256, 512), 1024, 64)
_BLOCKS = "closed form of the blocks as the example's code builds them; its comment says"
for _name, _title, _build, _folder, _image, _params, _source in (
    ("unet-medical", "U-Net, cell membranes", medical, "TensorFlow2/Segmentation/UNet_Medical", 572,
     _medical_params(), "closed form"),
    ("unet-industrial", "TinyUNet, industrial defects", partial(industrial, shape=TINY), INDUSTRIAL, 512,
     TINY.params(), f"{_BLOCKS} 1,824,945, which no variant of them gives"),
    ("unet-industrial-original", "U-Net, industrial defects", partial(industrial, shape=ORIGINAL), INDUSTRIAL, 512,
     ORIGINAL.params(), f"{_BLOCKS} 36,950,273, which is these blocks with nothing halved on the way up"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=f"Ronneberger et al. 2015, arXiv 1505.04597; NVIDIA DeepLearningExamples, {_folder}",
            published_params=_params,
            published_source=_source,
            build=_build,
            dims={"image": _image},
            domain="detection and segmentation",
        ),
    )
