"""Cicek et al.: 3D U-Net (2016), as MLPerf and NVIDIA build it, and Milletari et al.: V-Net (2016)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTHS = (32, 64, 128, 256, 320)


def _conv(b: Builder, x: str, channels: int, name: str, stride: int = 1) -> str:
    with b.scope(name):
        return b.relu(b.instance_norm(b.conv(x, channels, 3, stride=stride, pad=1)))


def unet(b: Builder, batch: int, dims: Mapping[str, int], *, channels: int, classes: int, kernel: int) -> Model:
    """Instance-normalised pairs of 3x3x3 convolutions, strided down and transposed up, skips joined."""
    side = dims["side"]
    if side % 32:
        raise b.refuse("side", side, "multiples of 32, the stride of its narrowest part")
    x = b.input("volume", (batch, channels, side, side, side))
    skips = []
    for level, width in enumerate((*WIDTHS, WIDTHS[-1])):
        with b.scope("down", level):
            x = _conv(b, _conv(b, x, width, "conv1", stride=2 if level else 1), width, "conv2")
        skips.append(x)
    skips.pop()
    for level, width in enumerate(reversed(WIDTHS)):
        with b.scope("up", level):
            x = b.concat(b.conv_transpose(x, width, 2, stride=2), skips.pop())
            x = _conv(b, _conv(b, x, width, "conv1"), width, "conv2")
    return b.finish(b.conv(x, classes, kernel, pad=kernel // 2, bias=True, name="out"))


def _vnet_layer(b: Builder, x: str, channels: int, kernel: int, name: str, stride: int = 1) -> str:
    with b.scope(name):
        pad = kernel // 2 if stride == 1 else 0
        return b.relu(b.batch_norm(b.conv(x, channels, kernel, stride=stride, pad=pad, bias=True)))


def _vnet_residual(b: Builder, x: str, depth: int = 3) -> str:
    y = x
    for index in range(depth):
        y = _vnet_layer(b, y, b.shape(x)[1], 3, f"conv{index}")
    return b.add(y, x)


def vnet(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Residual blocks of three 3x3x3 convolutions, strided down three times and transposed up."""
    side = dims["side"]
    if side % 8:
        raise b.refuse("side", side, "multiples of 8, the stride of its narrowest part")
    image = b.input("volume", (batch, 1, side, side, side))
    x = _vnet_layer(b, image, 16, 3, "input")
    x = b.add(x, image)
    skips = [x]
    for level in range(3):
        with b.scope("down", level):
            x = _vnet_residual(b, _vnet_layer(b, x, 2 * b.shape(x)[1], 2, "pool", stride=2))
        skips.append(x)
    skips.pop()
    for level in range(2):
        with b.scope("up", level):
            skip = skips.pop()
            x = b.relu(b.batch_norm(b.conv_transpose(x, b.shape(skip)[1], 2, stride=2)))
            x = _vnet_residual(b, b.concat(x, skip))
    with b.scope("output"):
        x = b.relu(b.batch_norm(b.conv_transpose(x, b.shape(skips.pop())[1], 2, stride=2)))
        return b.finish(b.conv(x, 3, 3, pad=1, bias=True))


def _vnet_params() -> int:
    """Convolutions with biases and two values a channel of normalisation."""

    def layer(inputs: int, outputs: int, volume: int) -> int:
        return (volume * inputs + 1 + 2) * outputs

    total = layer(1, 16, 27)
    total += sum(layer(w, 2 * w, 8) + 3 * layer(2 * w, 2 * w, 27) for w in (16, 32, 64))
    total += sum(layer(2 * w, w, 8) + 3 * layer(2 * w, 2 * w, 27) for w in (64,))
    total += layer(128, 32, 8) + 3 * layer(64, 64, 27)
    return total + layer(64, 16, 8) + (27 * 16 + 1) * 3


CICEK = "Cicek et al. 2016, arXiv 1606.06650"
for _name, _title, _build, _citation, _side, _params, _rounding, _source in (
    ("unet3d-kits19", "3D U-Net, KiTS19", partial(unet, channels=1, classes=3, kernel=1),
     f"{CICEK}; MLPerf Training reference (image_segmentation)", 128, 31_200_000,
     100_000, "recalled: 31.2 million (MLPerf Inference)"),
    ("unet3d-brats", "3D U-Net, BraTS", partial(unet, channels=4, classes=4, kernel=3),
     f"{CICEK}; NVIDIA DeepLearningExamples, TensorFlow/Segmentation/UNet_3D_Medical", 128,
     31_190_243 + 27 * 3 * 32 + (27 * 32 + 1) * 4 - (32 + 1) * 3, 1,
     "the entry for KiTS19 with four channels in, four out, and a 3x3x3 classifier"),
    ("vnet", "V-Net, hippocampus", vnet,
     "Milletari et al. 2016, arXiv 1606.04797; NVIDIA DeepLearningExamples, TensorFlow/Segmentation/VNet", 32,
     _vnet_params(), 1, "closed form; recalled: 3x3x3 kernels, three convolutions a block, three levels"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_source=_source,
            build=_build,
            dims={"side": _side},
            domain="detection and segmentation",
            rounding=_rounding,
        ),
    )
