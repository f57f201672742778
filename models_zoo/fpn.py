"""Detectors on feature pyramids: RetinaNet (Lin et al. 2017) and Mask R-CNN (He et al. 2017); torchvision's layouts.

Proposals, their suppression, sampling and matching have sizes that depend on the data: they are not
covered, the number of proposals and masks is a size of the entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo import resnet
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTH = 256


def _pyramid(b: Builder, maps: Sequence[str]) -> list[str]:
    """1x1 convolutions of the stages, summed from coarse to fine, each smoothed by 3x3; fine to coarse."""
    inner = [b.conv(x, WIDTH, 1, bias=True, name=f"inner.{index}") for index, x in enumerate(maps)]
    for index in range(len(maps) - 2, -1, -1):
        inner[index] = b.add(inner[index], b.resize(inner[index + 1], b.shape(inner[index])[2:]))
    return [b.conv(x, WIDTH, 3, pad=1, bias=True, name=f"layer.{index}") for index, x in enumerate(inner)]


def _backbone(b: Builder, batch: int, dims: Mapping[str, int], shape: resnet.Shape) -> list[str]:
    b.frozen_norm = True
    x = b.input("image", (batch, 3, dims["height"], dims["width"]))
    with b.scope("backbone"):
        return resnet.trunk(b, x, shape)


def _shared(b: Builder, x: str, weights: tuple[str, str], channels: int, kernel: int) -> str:
    """A convolution whose weights other pyramid levels use too."""
    n, _, h, w = b.shape(x)
    pads = (kernel // 2,) * 4
    return b.op(
        "Conv", [x, *weights], (n, channels, h, w), kernel_shape=(kernel, kernel), strides=(1, 1), pads=pads, group=1,
        dilations=(1, 1),
    )  # fmt: skip


def _weights(b: Builder, name: str, channels: int, kernel: int) -> tuple[str, str]:
    return b.param(f"{name}.weight", (channels, WIDTH, kernel, kernel)), b.param(f"{name}.bias", (channels,))


def retinanet(b: Builder, batch: int, dims: Mapping[str, int], *, shape: resnet.Shape) -> Model:
    """Pyramid levels 3 to 7, two towers of four convolutions shared by all, 9 anchors a cell."""
    stages = _backbone(b, batch, dims, shape)
    with b.scope("fpn"):
        levels = _pyramid(b, stages[1:])
        six = b.conv(levels[-1], WIDTH, 3, stride=2, pad=1, bias=True, name="p6")
        levels += [six, b.conv(b.relu(six), WIDTH, 3, stride=2, pad=1, bias=True, name="p7")]
    results = []
    for part, size in (("classification", dims["classes"]), ("regression", 4)):
        with b.scope(part):
            tower = [_weights(b, f"conv.{index}", WIDTH, 3) for index in range(4)]
            out = _weights(b, "out", 9 * size, 3)
            found = []
            for x in levels:
                for weights in tower:
                    x = b.relu(_shared(b, x, weights, WIDTH, 3))
                x = _shared(b, x, out, 9 * size, 3)
                n, _, h, w = b.shape(x)
                x = b.transpose(b.reshape(x, (n, 9, size, h, w)), (0, 3, 4, 1, 2))
                found.append(b.reshape(x, (n, 9 * h * w, size)))
            results.append(b.concat(*found))
    b.note("not covered: anchors, matching, loss sampling and non-maximum suppression")
    return b.finish(*results)


def _pooled(b: Builder, levels: Sequence[str], count: int, side: int, name: str) -> str:
    """``count`` regions from four levels, each aligned to ``side`` x ``side``."""
    parts = []
    for index, x in enumerate(levels):
        share = count // 4 + (1 if index < count % 4 else 0)
        if share:
            boxes = b.constant(f"{name}_boxes.{index}", (share, 4), "float32")
            owners = b.constant(f"{name}_owners.{index}", (share,))
            parts.append(
                b.op(
                    "RoiAlign", [x, boxes, owners], (share, WIDTH, side, side), output_height=side, output_width=side,
                    sampling_ratio=2,
                )
            )  # fmt: skip
    return b.concat(*parts, axis=0)


def mask_rcnn(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Pyramid levels 2 to 6, region proposals, two fully connected layers a proposal, four convolutions a mask."""
    stages = _backbone(b, batch, dims, resnet.RESNET50)
    with b.scope("fpn"):
        levels = _pyramid(b, stages)
    with b.scope("rpn"):
        weights = [
            _weights(b, name, size, kernel)
            for name, size, kernel in (("conv", WIDTH, 3), ("cls", 3, 1), ("bbox", 12, 1))
        ]
        results = []
        for x in (*levels, b.max_pool(levels[-1], 1, 2)):
            x = b.relu(_shared(b, x, weights[0], WIDTH, 3))
            results += [_shared(b, x, weights[1], 3, 1), _shared(b, x, weights[2], 12, 1)]
    classes = dims["classes"]
    with b.scope("box"):
        x = b.flatten(_pooled(b, levels, batch * dims["proposals"], 7, "box"))
        x = b.relu(b.gemm(b.relu(b.gemm(x, 1024, name="fc6")), 1024, name="fc7"))
        results += [b.gemm(x, classes, name="cls_score"), b.gemm(x, 4 * classes, name="bbox_pred")]
    with b.scope("mask"):
        x = _pooled(b, levels, batch * dims["masks"], 14, "mask")
        for index in range(4):
            x = b.relu(b.conv(x, WIDTH, 3, pad=1, bias=True, name=f"fcn{index + 1}"))
        x = b.relu(b.conv_transpose(x, WIDTH, 2, stride=2, name="conv5"))
        results.append(b.conv(x, classes, 1, bias=True, name="logits"))
    b.note("not covered: proposals' suppression, sampling, matching; assumed: regions divide evenly over the levels")
    return b.finish(*results)


# torchvision's own: all parameters without classifier and normalisation
RESNET_TRUNK, RESNEXT_TRUNK = 25_557_032 - 2_049_000 - 53_120, 25_028_904 - 2_049_000 - 68_224
RETINANET = "Lin et al. 2017, arXiv 1708.02002"
for _name, _title, _build, _citation, _params, _source, _dims in (
    ("retinanet-resnet50", "RetinaNet on ResNet-50 FPN", partial(retinanet, shape=resnet.RESNET50),
     RETINANET, 34_014_999, "torchvision's own parameters, 91 classes; its card says 151.54 GMAC",
     {"height": 800, "width": 800, "classes": 91}),
    ("retinanet-resnext50", "RetinaNet on ResNeXt-50 FPN", partial(retinanet, shape=resnet.RESNEXT50),
     f"{RETINANET}; MLPerf Training v2.0 (OpenImages, 264 classes)",
     34_014_999 + RESNEXT_TRUNK - RESNET_TRUNK + 9 * (264 - 91) * (9 * WIDTH + 1),
     "torchvision's RetinaNet with the convolutions of its ResNeXt-50 and 264 classes; closed form",
     {"height": 800, "width": 800, "classes": 264}),
    ("maskrcnn-resnet50", "Mask R-CNN on ResNet-50 FPN", mask_rcnn, "He et al. 2017, arXiv 1703.06870", 44_401_393,
     "torchvision's own parameters, 91 classes",
     {"height": 800, "width": 1344, "classes": 91, "proposals": 512, "masks": 128}),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_source=_source,
            build=_build,
            dims=_dims,
            domain="detection and segmentation",
        ),
    )
