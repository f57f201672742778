"""Sandler et al.: MobileNetV2, Inverted Residuals and Linear Bottlenecks (2018)."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

# expansion, channels, repeats, first stride (Table 2 of the paper)
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _relu6(b: Builder, x: str) -> str:
    return b.op("Clip", [x, b.constant("zero", (), "float32"), b.constant("six", (), "float32")], b.shape(x))


def _inverted(b: Builder, x: str, expansion: int, channels: int, stride: int) -> str:
    hidden = b.shape(x)[1] * expansion
    y = x
    if expansion != 1:
        y = _relu6(b, b.batch_norm(b.conv(y, hidden, 1, name="expand"), "expand_bn"))
    y = b.conv(y, hidden, 3, stride=stride, pad=1, groups=hidden, name="depthwise")
    y = _relu6(b, b.batch_norm(y, "depthwise_bn"))
    y = b.batch_norm(b.conv(y, channels, 1, name="project"), "project_bn")
    return b.pointwise("Add", x, y) if stride == 1 and b.shape(x) == b.shape(y) else y


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Stem, inverted residuals, 1x1 head, classifier."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = _relu6(b, b.batch_norm(b.conv(x, 32, 3, stride=2, pad=1, name="stem"), "stem_bn"))
    for group, (expansion, channels, repeats, first) in enumerate(BLOCKS):
        for index in range(repeats):
            with b.scope("features", group, index):
                x = _inverted(b, x, expansion, channels, first if index == 0 else 1)
    x = _relu6(b, b.batch_norm(b.conv(x, 1280, 1, name="head"), "head_bn"))
    x = b.pointwise("Dropout", b.flatten(b.global_average_pool(x)))
    return b.finish(b.gemm(x, 1000, name="classifier"))


ZOO.add(
    "mobilenet-v2",
    ZooEntry(
        title="MobileNetV2 1.0",
        citation="Sandler et al. 2018, arXiv 1801.04381",
        published_params=3_504_872,
        published_macs=300_774_272,
        published_source="recalled from torchvision's model card (GFLOPs rounded there); MACs counted",
        build=build,
        dims={"image": 224},
    ),
)
