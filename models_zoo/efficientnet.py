"""Tan and Le: EfficientNet (2019); torchvision's layout, and the wider squeeze and excitation of NVIDIA's widese."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import ceil

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.mobilenet import Block, inverted, make_divisible

# expansion, kernel, stride, channels, repeats (Table 1 of the paper)
STAGES = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)  # fmt: skip


def build(
    b: Builder, batch: int, dims: Mapping[str, int], *, width: float, depth: float, wide_squeeze: bool
) -> Model:
    """Stem, seven stages of inverted residuals, 1x1 head, classifier; widths and repeats are scaled.

    Squeezed channels are a quarter of the block's input, for ``wide_squeeze`` of its expanded channels.
    """
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.swish(b.batch_norm(b.conv(x, make_divisible(32 * width), 3, stride=2, pad=1, name="stem"), "stem_bn"))
    for stage, (expansion, kernel, first, channels, repeats) in enumerate(STAGES):
        for index in range(ceil(repeats * depth)):
            with b.scope("blocks", stage, index):
                inputs = b.shape(x)[1]
                hidden = inputs * expansion
                block = Block(
                    hidden=hidden,
                    channels=make_divisible(channels * width),
                    stride=first if index == 0 else 1,
                    kernel=kernel,
                    squeezed=(hidden if wide_squeeze else inputs) // 4,
                    activation=Builder.swish,
                    gate="Sigmoid",
                    gate_activation=Builder.swish,
                )
                x = inverted(b, x, block)
    x = b.swish(b.batch_norm(b.conv(x, 4 * b.shape(x)[1], 1, name="head"), "head_bn"))
    x = b.dropout(b.flatten(b.global_average_pool(x)), 0.2)
    return b.finish(b.gemm(x, 1000, name="classifier"))


for _name, _width, _depth, _image, _params, _macs in (
    ("b0", 1.0, 1.0, 224, 5_288_548, 385_814_752),
    ("b1", 1.0, 1.1, 240, 7_794_184, 686_802_832),
    ("b2", 1.1, 1.2, 288, 9_109_994, 1_087_529_456),
    ("b3", 1.2, 1.4, 300, 12_233_232, 1_827_141_392),
    ("b4", 1.4, 1.8, 380, 19_341_616, 4_393_771_024),
    ("b5", 1.6, 2.2, 456, 30_389_784, 10_266_384_752),
    ("b6", 1.8, 2.6, 528, 43_040_704, 19_067_593_536),
    ("b7", 2.0, 3.1, 600, 66_347_960, 37_745_884_192),
):
    ZOO.add(
        f"efficientnet-{_name}",
        ZooEntry(
            title=f"EfficientNet-{_name.upper()}",
            citation="Tan and Le 2019, arXiv 1905.11946",
            published_params=_params,
            published_macs=_macs,
            published_source="torchvision's own parameters; MACs of torch's counter on them",
            build=partial(build, width=_width, depth=_depth, wide_squeeze=False),
            dims={"image": _image},
        ),
    )
for _name, _width, _depth, _image, _params in (
    ("widese-b0", 1.0, 1.0, 224, 8_423_848),
    ("widese-b4", 1.4, 1.8, 380, 34_927_246),
):
    ZOO.add(
        f"efficientnet-{_name}",
        ZooEntry(
            title=f"EfficientNet-{_name}",
            citation="NVIDIA DeepLearningExamples, PyTorch/Classification/ConvNets/efficientnet",
            published_params=_params,
            published_source=(
                "closed form: EfficientNet's own parameters, and 2 * hidden + 1 for every squeezed channel more"
            ),
            build=partial(build, width=_width, depth=_depth, wide_squeeze=True),
            dims={"image": _image},
        ),
    )
