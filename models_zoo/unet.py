"""Ronneberger, Fischer and Brox: U-Net (2015), as NVIDIA's medical and industrial examples build it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTHS = (64, 128, 256, 512)


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


def industrial(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Padded 3x3 convolutions; the second of every pair on the way up halves the channels."""
    if dims["image"] % 16:
        raise b.refuse("image", dims["image"], "multiples of 16, the stride of its narrowest part")
    x = b.input("image", (batch, 1, dims["image"], dims["image"]))
    skips = []
    for index, width in enumerate(WIDTHS):
        with b.scope("down", index):
            x = _pair(b, x, width, width, 1)
        skips.append(x)
        x = b.max_pool(x, 2, 2)
    with b.scope("bottleneck"):
        x = b.relu(b.conv_transpose(_pair(b, x, 1024, 1024, 1), 512, 2, stride=2))
    for index, width in enumerate(WIDTHS[:0:-1]):
        with b.scope("up", index):
            x = _pair(b, b.concat(x, skips.pop()), width, width // 2, 1)
            x = b.relu(b.conv_transpose(x, width // 2, 2, stride=2))
    with b.scope("out"):
        x = _pair(b, b.concat(x, skips.pop()), 64, 64, 1)
        return b.finish(b.pointwise("Sigmoid", b.conv(x, 1, 1, bias=True)))


def _counted(*, kernel: int, halved: bool, classes: int) -> int:
    """Convolutions with biases; the deepest pair has 1024 channels, the finest level never halves them."""
    widths = (1, *WIDTHS, 1024)
    total = sum((9 * i + 1) * o + (9 * o + 1) * o for i, o in pairwise(widths))
    for width in WIDTHS[::-1]:
        second = width // 2 if halved and width > 64 else width
        total += (9 * 2 * width + 1) * width + (9 * width + 1) * second
    for wide in (1024, 512, 256, 128):
        total += (kernel**2 * (wide // 2 if halved and wide < 1024 else wide) + 1) * (wide // 2)
    return total + (64 + 1) * classes


for _name, _title, _build, _folder, _image, _params, _source in (
    ("unet-medical", "U-Net, cell membranes", medical, "TensorFlow2/Segmentation/UNet_Medical", 572,
     _counted(kernel=3, halved=False, classes=2), "closed form"),
    ("unet-industrial", "U-Net, industrial defects", industrial, "TensorFlow/Segmentation/UNet_Industrial", 512,
     _counted(kernel=2, halved=True, classes=1),
     "closed form of the blocks; a comment of the example says 36,950,273"),
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
