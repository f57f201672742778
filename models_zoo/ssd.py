"""Liu et al.: SSD, Single Shot MultiBox Detector (2015): on VGG-16 and the ResNets of MLPerf and NVIDIA."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo import resnet
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

BOXES = (4, 6, 6, 6, 4, 4)
MIDDLE = (256, 256, 128, 128, 128)
OUTPUTS = (512, 512, 256, 256, 256)
VGG_GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3))


def _heads(b: Builder, maps: list[str], labels: int) -> tuple[str, str]:
    """Offsets ``[N, 4, boxes]`` and scores ``[N, labels, boxes]`` of every default box."""
    found: dict[str, list[str]] = {"loc": [], "conf": []}
    for index, (boxes, x) in enumerate(zip(BOXES, maps, strict=True)):
        n, _, h, w = b.shape(x)
        for part, size in (("loc", 4), ("conf", labels)):
            y = b.conv(x, boxes * size, 3, pad=1, bias=True, name=f"{part}.{index}")
            found[part].append(b.reshape(y, (n, size, boxes * h * w)))
    return b.concat(*found["loc"], axis=2), b.concat(*found["conf"], axis=2)


def on_resnet(b: Builder, batch: int, dims: Mapping[str, int], *, shape: resnet.Shape, normed: bool) -> Model:
    """Three stages, the last at stride 1, then five blocks down to 1x1; those normalise only for ``normed``."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    with b.scope("feature_extractor"):
        x = resnet.trunk(b, x, shape, stages=3, strides=(1, 2, 1))[-1]
    maps = [x]
    for index, (middle, channels) in enumerate(zip(MIDDLE, OUTPUTS, strict=True)):
        stride, pad = (2, 1) if index < 3 else (1, 0)
        with b.scope("additional", index):
            x = b.conv(x, middle, 1, bias=not normed, name="0")
            x = b.relu(b.batch_norm(x, "1") if normed else x)
            x = b.conv(x, channels, 3, stride=stride, pad=pad, bias=not normed, name="3")
            x = b.relu(b.batch_norm(x, "4") if normed else x)
        maps.append(x)
    return b.finish(*_heads(b, maps, dims["labels"]))


def on_vgg(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """VGG-16 to its last convolutions, fully connected layers as (dilated) convolutions, four blocks down to 1x1."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    maps: list[str] = []
    for group, (width, count) in enumerate(VGG_GROUPS):
        x = b.max_pool(x, 2, 2, ceil=True) if group else x
        for index in range(count):
            x = b.relu(b.conv(x, width, 3, pad=1, bias=True, name=f"conv{group + 1}_{index + 1}"))
    scale = b.param("scale", (1, 512, 1, 1))
    maps.append(b.pointwise("Mul", b.pointwise("LpNormalization", x, axis=1, p=2), scale))
    x = b.max_pool(x, 2, 2)
    for index in range(3):
        x = b.relu(b.conv(x, 512, 3, pad=1, bias=True, name=f"conv5_{index + 1}"))
    x = b.relu(b.conv(b.max_pool(x, 3, 1, 1), 1024, 3, pad=6, dilation=6, bias=True, name="fc6"))
    x = b.relu(b.conv(x, 1024, 1, bias=True, name="fc7"))
    maps.append(x)
    for index, (middle, channels, stride) in enumerate(((256, 512, 2), (128, 256, 2), (128, 256, 1), (128, 256, 1))):
        with b.scope("extra", index):
            x = b.relu(b.conv(x, middle, 1, bias=True, name="0"))
            x = b.relu(b.conv(x, channels, 3, stride=stride, pad=1 if stride == 2 else 0, bias=True, name="2"))
        maps.append(x)
    return b.finish(*_heads(b, maps, dims["labels"]))


def _extras(source: int, *, normed: bool) -> int:
    """Parameters of the five blocks: convolutions, and two values a channel of normalisation or one of bias."""
    inputs = (source, *OUTPUTS)
    each = 2 if normed else 1
    return sum(m * i + each * m + 9 * m * o + each * o for i, m, o in zip(inputs, MIDDLE, OUTPUTS, strict=False))


def _head_params(channels: tuple[int, ...], labels: int) -> int:
    return sum(boxes * (labels + 4) * (9 * c + 1) for boxes, c in zip(BOXES, channels, strict=True))


LIU = "Liu et al. 2015, arXiv 1512.02325"
# torchvision's own ResNets without their fourth stage and classifier
TRUNK50, TRUNK34 = 25_557_032 - 14_964_736 - 2_049_000, 21_797_672 - 13_114_368 - 513_000
for _name, _title, _build, _citation, _labels, _params, _source in (
    ("ssd300-resnet50", "SSD300 on ResNet-50", partial(on_resnet, shape=resnet.RESNET50, normed=True),
     f"{LIU}; NVIDIA DeepLearningExamples, PyTorch/Detection/SSD", 81,
     TRUNK50 + _extras(1024, normed=True) + _head_params((1024, *OUTPUTS), 81),
     "torchvision's own trunk; the rest by the closed form"),
    ("ssd300-resnet34", "SSD300 on ResNet-34", partial(on_resnet, shape=resnet.RESNET34, normed=False),
     f"{LIU}; MLPerf Training reference (single_stage_detector)", 81,
     TRUNK34 + _extras(256, normed=False) + _head_params((256, *OUTPUTS), 81),
     "torchvision's own trunk; the rest by the closed form"),
    ("ssd300-vgg16", "SSD300 on VGG-16", on_vgg, LIU, 91, 35_641_826, "torchvision's own parameters, 91 classes"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_source=_source,
            build=_build,
            dims={"image": 300, "labels": _labels},
            domain="detection and segmentation",
        ),
    )
