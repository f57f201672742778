"""He, Zhang, Ren and Sun: Deep Residual Learning for Image Recognition (2015); torchvision's layout (v1.5)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

CLASSES = 1000


def _basic(b: Builder, x: str, width: int, stride: int) -> str:
    """Two 3x3 convolutions."""
    y = b.relu(b.batch_norm(b.conv(x, width, 3, stride=stride, pad=1, name="conv1"), "bn1"))
    return b.batch_norm(b.conv(y, width, 3, pad=1, name="conv2"), "bn2")


def _bottleneck(b: Builder, x: str, width: int, stride: int) -> str:
    """1x1, 3x3 (with the stride), 1x1 to four times the width."""
    y = b.relu(b.batch_norm(b.conv(x, width, 1, name="conv1"), "bn1"))
    y = b.relu(b.batch_norm(b.conv(y, width, 3, stride=stride, pad=1, name="conv2"), "bn2"))
    return b.batch_norm(b.conv(y, 4 * width, 1, name="conv3"), "bn3")


def build(b: Builder, batch: int, dims: Mapping[str, int], *, blocks: tuple[int, ...], bottleneck: bool) -> Model:
    """Stem, four stages of residual blocks, classifier."""
    block, expansion = (_bottleneck, 4) if bottleneck else (_basic, 1)
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.relu(b.batch_norm(b.conv(x, 64, 7, stride=2, pad=3, name="conv1"), "bn1"))
    x = b.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for index in range(count):
            stride = 2 if stage and index == 0 else 1
            with b.scope(f"layer{stage + 1}", index):
                y = block(b, x, width, stride)
                if stride != 1 or b.shape(x)[1] != expansion * width:
                    with b.scope("downsample"):
                        x = b.batch_norm(b.conv(x, expansion * width, 1, stride=stride, name="0"), "1")
                x = b.relu(b.pointwise("Add", y, x))
    return b.finish(b.gemm(b.flatten(b.global_average_pool(x)), CLASSES))


for _name, _blocks, _bottle, _params, _macs in (
    ("resnet18", (2, 2, 2, 2), False, 11_689_512, 1_814_073_344),
    ("resnet34", (3, 4, 6, 3), False, 21_797_672, 3_663_761_408),
    ("resnet50", (3, 4, 6, 3), True, 25_557_032, 4_089_184_256),
    ("resnet101", (3, 4, 23, 3), True, 44_549_160, 7_801_405_440),
    ("resnet152", (3, 8, 36, 3), True, 60_192_808, 11_513_626_624),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=f"ResNet-{_name.removeprefix('resnet')}",
            citation="He et al. 2015, arXiv 1512.03385",
            published_params=_params,
            published_macs=_macs,
            published_source="recalled from torchvision's model card (GFLOPs rounded there); MACs counted",
            build=partial(build, blocks=_blocks, bottleneck=_bottle),
            dims={"image": 224},
        ),
    )
