"""MobileNet v1 (Howard et al. 2017), v2 (Sandler et al. 2018), v3 (Howard et al. 2019), MNASNet (Tan et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

Activation = Callable[[Builder, str], str]


def make_divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple of ``by`` that keeps at least 90 % of the channels (the papers' own rounding)."""
    rounded = max(by, int(channels + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * channels else rounded


def relu6(b: Builder, x: str) -> str:
    """Rectifier clipped at 6."""
    return b.clip(x)


def hard_swish(b: Builder, x: str) -> str:
    """``x * relu6(x + 3) / 6``."""
    return b.pointwise("HardSwish", x)


def squeeze_excite(b: Builder, x: str, squeezed: int, inner: Activation, gate: str) -> str:
    """Channels scaled by what a bottleneck of ``squeezed`` makes of their means."""
    with b.scope("se"):
        y = inner(b, b.conv(b.global_average_pool(x), squeezed, 1, bias=True, name="reduce"))
        y = b.pointwise(gate, b.conv(y, b.shape(x)[1], 1, bias=True, name="expand"))
    return b.pointwise("Mul", x, y)


@dataclass(frozen=True)
class Block:
    """An inverted residual: ``hidden`` channels in the middle, ``squeezed`` of squeeze and excitation (0: none)."""

    hidden: int
    channels: int
    stride: int
    kernel: int = 3
    squeezed: int = 0
    activation: Activation = relu6
    gate: str = "HardSigmoid"
    gate_activation: Activation = Builder.relu


def inverted(b: Builder, x: str, block: Block) -> str:
    """1x1 to more channels, depthwise, 1x1 to few; added to the input where shapes allow."""
    y = x
    if block.hidden != b.shape(x)[1]:
        y = block.activation(b, b.batch_norm(b.conv(y, block.hidden, 1, name="expand"), "expand_bn"))
    y = b.conv(
        y,
        block.hidden,
        block.kernel,
        stride=block.stride,
        pad=block.kernel // 2,
        groups=block.hidden,
        name="depthwise",
    )
    y = block.activation(b, b.batch_norm(y, "depthwise_bn"))
    if block.squeezed:
        y = squeeze_excite(b, y, block.squeezed, block.gate_activation, block.gate)
    y = b.batch_norm(b.conv(y, block.channels, 1, name="project"), "project_bn")
    return b.add(x, y) if block.stride == 1 and b.shape(x) == b.shape(y) else y


def _stem(b: Builder, batch: int, dims: Mapping[str, int], channels: int, activation: Activation) -> str:
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    return activation(b, b.batch_norm(b.conv(x, channels, 3, stride=2, pad=1, name="stem"), "stem_bn"))


def _separable(b: Builder, x: str, channels: int, stride: int, activation: Activation) -> str:
    x = b.conv(x, b.shape(x)[1], 3, stride=stride, pad=1, groups=b.shape(x)[1], name="depthwise")
    x = activation(b, b.batch_norm(x, "depthwise_bn"))
    return b.batch_norm(b.conv(x, channels, 1, name="pointwise"), "pointwise_bn")


V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
# expansion, channels, repeats, first stride (Table 2 of the paper)
V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
# kernel, expansion, channels, squeeze and excitation, h-swish, stride (Tables 1 and 2 of the paper)
V3_LARGE = (
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1),
    (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
    (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1),
    (5, 960, 160, 1, 1, 1),
)  # fmt: skip
V3_SMALL = (
    (3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1),
    (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1),
    (5, 576, 96, 1, 1, 1),
)  # fmt: skip
# expansion, channels, repeats, first stride, kernel (MNASNet-B1)
MNASNET = (
    (3, 24, 3, 2, 3),
    (3, 40, 3, 2, 5),
    (6, 80, 3, 2, 5),
    (6, 96, 2, 1, 3),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def v1(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Stem, thirteen depthwise separable convolutions, classifier."""
    x = _stem(b, batch, dims, 32, relu6)
    for index, (channels, stride) in enumerate(V1):
        with b.scope("features", index):
            x = relu6(b, _separable(b, x, channels, stride, relu6))
    return b.finish(b.gemm(b.flatten(b.global_average_pool(x)), 1000, name="classifier"))


def v2(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Stem, inverted residuals, 1x1 head, classifier."""
    x = _stem(b, batch, dims, 32, relu6)
    for group, (expansion, channels, repeats, first) in enumerate(V2):
        for index in range(repeats):
            with b.scope("features", group, index):
                x = inverted(b, x, Block(b.shape(x)[1] * expansion, channels, first if index == 0 else 1))
    x = relu6(b, b.batch_norm(b.conv(x, 1280, 1, name="head"), "head_bn"))
    x = b.dropout(b.flatten(b.global_average_pool(x)), 0.2)
    return b.finish(b.gemm(x, 1000, name="classifier"))


def v3(b: Builder, batch: int, dims: Mapping[str, int], *, rows: tuple[tuple[int, ...], ...], head: int) -> Model:
    """Stem, inverted residuals with squeeze and excitation, pooled before the wide 1x1 head, classifier."""
    x = _stem(b, batch, dims, 16, hard_swish)
    for index, (kernel, hidden, channels, squeeze, swish, stride) in enumerate(rows):
        with b.scope("features", index):
            squeezed = make_divisible(hidden / 4) if squeeze else 0
            activation: Activation = hard_swish if swish else Builder.relu
            x = inverted(b, x, Block(hidden, channels, stride, kernel, squeezed, activation))
    x = hard_swish(b, b.batch_norm(b.conv(x, 6 * b.shape(x)[1], 1, name="head"), "head_bn"))
    x = hard_swish(b, b.gemm(b.flatten(b.global_average_pool(x)), head, name="wide"))
    return b.finish(b.gemm(b.dropout(x, 0.2), 1000, name="classifier"))


def mnasnet(b: Builder, batch: int, dims: Mapping[str, int], *, scale: float) -> Model:
    """Stem, a separable convolution, inverted residuals without squeeze and excitation, 1x1 head, classifier."""
    x = _stem(b, batch, dims, make_divisible(32 * scale), Builder.relu)
    with b.scope("separable"):
        x = _separable(b, x, make_divisible(16 * scale), 1, Builder.relu)
    for group, (expansion, channels, repeats, first, kernel) in enumerate(MNASNET):
        for index in range(repeats):
            with b.scope("layers", group, index):
                stride = first if index == 0 else 1
                hidden, width = b.shape(x)[1] * expansion, make_divisible(channels * scale)
                x = inverted(b, x, Block(hidden, width, stride, kernel, activation=Builder.relu))
    x = b.relu(b.batch_norm(b.conv(x, 1280, 1, name="head"), "head_bn"))
    x = b.dropout(b.flatten(b.global_average_pool(x)), 0.2)
    return b.finish(b.gemm(x, 1000, name="classifier"))


SANDLER, HOWARD, TAN = (
    "Sandler et al. 2018, arXiv 1801.04381",
    "Howard et al. 2019, arXiv 1905.02244",
    "Tan et al. 2018, arXiv 1807.11626",
)

for _name, _title, _citation, _build, _library, _params, _macs in (
    ("mobilenet-v1", "MobileNet 1.0", "Howard et al. 2017, arXiv 1704.04861", v1, "timm's", 4_231_976,
     568_740_352),
    ("mobilenet-v2", "MobileNetV2 1.0", SANDLER, v2, "torchvision's", 3_504_872, 300_774_272),
    ("mobilenet-v3-small", "MobileNetV3 small", HOWARD, partial(v3, rows=V3_SMALL, head=1024), "torchvision's",
     2_542_856, 56_510_400),
    ("mobilenet-v3-large", "MobileNetV3 large", HOWARD, partial(v3, rows=V3_LARGE, head=1280), "torchvision's",
     5_483_032, 216_589_760),
    ("mnasnet0-5", "MNASNet-B1 0.5", TAN, partial(mnasnet, scale=0.5), "torchvision's", 2_218_512, 104_455_968),
    ("mnasnet0-75", "MNASNet-B1 0.75", TAN, partial(mnasnet, scale=0.75), "torchvision's", 3_170_208, 215_493_104),
    ("mnasnet1-0", "MNASNet-B1 1.0", TAN, partial(mnasnet, scale=1.0), "torchvision's", 4_383_312, 314_415_872),
    ("mnasnet1-3", "MNASNet-B1 1.3", TAN, partial(mnasnet, scale=1.3), "torchvision's", 6_282_256, 526_362_432),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_macs=_macs,
            published_source=f"{_library} own parameters; MACs of torch's counter on them",
            build=_build,
            dims={"image": 224},
        ),
    )
