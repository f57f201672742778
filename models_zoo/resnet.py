"""He, Zhang, Ren and Sun: Deep Residual Learning for Image Recognition (2015); torchvision's layout (v1.5).

With it the wide (Zagoruyko and Komodakis 2016), grouped (Xie et al. 2016) and squeeze-and-excitation
(Hu et al. 2017) kin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

CLASSES = 1000
HE = "He et al. 2015, arXiv 1512.03385"
WIDE = "Zagoruyko and Komodakis 2016, arXiv 1605.07146"
NEXT = "Xie et al. 2016, arXiv 1611.05431"
SQUEEZE = "Hu et al. 2017, arXiv 1709.01507"


@dataclass(frozen=True)
class Shape:
    """Blocks a stage; how wide and in how many groups the 3x3 convolutions of a bottleneck are."""

    blocks: tuple[int, ...]
    bottleneck: bool = True
    groups: int = 1
    group_width: int = 64
    squeeze: bool = False

    def inner(self, width: int) -> int:
        """Channels of the 3x3 convolution in a stage of ``width``."""
        return width * self.group_width // 64 * self.groups


def _basic(b: Builder, x: str, width: int, stride: int) -> str:
    """Two 3x3 convolutions."""
    y = b.relu(b.batch_norm(b.conv(x, width, 3, stride=stride, pad=1, name="conv1"), "bn1"))
    return b.batch_norm(b.conv(y, width, 3, pad=1, name="conv2"), "bn2")


def _bottleneck(b: Builder, x: str, width: int, stride: int, shape: Shape) -> str:
    """1x1, 3x3 (with the stride), 1x1 to four times the width; squeeze and excitation on the result."""
    inner = shape.inner(width)
    y = b.relu(b.batch_norm(b.conv(x, inner, 1, name="conv1"), "bn1"))
    y = b.relu(b.batch_norm(b.conv(y, inner, 3, stride=stride, pad=1, groups=shape.groups, name="conv2"), "bn2"))
    y = b.batch_norm(b.conv(y, 4 * width, 1, name="conv3"), "bn3")
    if shape.squeeze:
        with b.scope("se"):
            s = b.relu(b.conv(b.global_average_pool(y), 4 * width // 16, 1, bias=True, name="fc1"))
            y = b.pointwise("Mul", y, b.pointwise("Sigmoid", b.conv(s, 4 * width, 1, bias=True, name="fc2")))
    return y


def trunk(b: Builder, x: str, shape: Shape, *, stages: int = 4, strides: tuple[int, ...] = (1, 2, 2, 2)) -> list[str]:
    """Stem and the first ``stages`` stages of residual blocks; the result of each stage."""
    expansion = 4 if shape.bottleneck else 1
    x = b.relu(b.batch_norm(b.conv(x, 64, 7, stride=2, pad=3, name="conv1"), "bn1"))
    x = b.max_pool(x, 3, 2, 1)
    results = []
    for stage, (count, first) in enumerate(zip(shape.blocks[:stages], strides, strict=False)):
        width = 64 * 2**stage
        for index in range(count):
            stride = first if index == 0 else 1
            with b.scope(f"layer{stage + 1}", index):
                y = _bottleneck(b, x, width, stride, shape) if shape.bottleneck else _basic(b, x, width, stride)
                if stride != 1 or b.shape(x)[1] != expansion * width:
                    with b.scope("downsample"):
                        x = b.batch_norm(b.conv(x, expansion * width, 1, stride=stride, name="0"), "1")
                x = b.relu(b.add(y, x))
        results.append(x)
    return results


def build(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape) -> Model:
    """Stem, four stages of residual blocks, classifier."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = trunk(b, x, shape)[-1]
    return b.finish(b.gemm(b.flatten(b.global_average_pool(x)), CLASSES))


RESNET18, RESNET34 = Shape((2, 2, 2, 2), bottleneck=False), Shape((3, 4, 6, 3), bottleneck=False)
RESNET50, RESNET101, RESNET152 = Shape((3, 4, 6, 3)), Shape((3, 4, 23, 3)), Shape((3, 8, 36, 3))
RESNEXT50 = Shape((3, 4, 6, 3), groups=32, group_width=4)
TORCHVISION, TIMM = "torchvision's", "timm's"

for _name, _title, _shape, _citation, _library, _params, _macs in (
    ("resnet18", "ResNet-18", RESNET18, HE, TORCHVISION, 11_689_512, 1_814_073_344),
    ("resnet34", "ResNet-34", RESNET34, HE, TORCHVISION, 21_797_672, 3_663_761_408),
    ("resnet50", "ResNet-50", RESNET50, HE, TORCHVISION, 25_557_032, 4_089_184_256),
    ("resnet101", "ResNet-101", RESNET101, HE, TORCHVISION, 44_549_160, 7_801_405_440),
    ("resnet152", "ResNet-152", RESNET152, HE, TORCHVISION, 60_192_808, 11_513_626_624),
    ("resnet200", "ResNet-200", Shape((3, 24, 36, 3)), HE, TIMM, 64_673_832, 15_007_481_856),
    ("wide-resnet50-2", "Wide ResNet-50-2", Shape((3, 4, 6, 3), group_width=128), WIDE, TORCHVISION, 68_883_240,
     11_398_021_120),
    ("wide-resnet101-2", "Wide ResNet-101-2", Shape((3, 4, 23, 3), group_width=128), WIDE, TORCHVISION, 126_886_696,
     22_753_050_624),
    ("resnext50-32x4d", "ResNeXt-50 32x4d", RESNEXT50, NEXT, TORCHVISION, 25_028_904, 4_230_479_872),
    ("resnext101-32x4d", "ResNeXt-101 32x4d", Shape((3, 4, 23, 3), groups=32, group_width=4), NEXT, TIMM, 44_177_704,
     7_969_996_800),
    ("resnext101-32x8d", "ResNeXt-101 32x8d", Shape((3, 4, 23, 3), groups=32, group_width=8), NEXT, TORCHVISION,
     88_791_336, 16_414_015_488),
    ("resnext101-64x4d", "ResNeXt-101 64x4d", Shape((3, 4, 23, 3), groups=64, group_width=4), NEXT, TORCHVISION,
     83_455_272, 15_460_270_080),
    ("seresnet50", "SE-ResNet-50", Shape((3, 4, 6, 3), squeeze=True), SQUEEZE, TIMM, 28_088_024, 4_091_699_200),
    ("seresnext50-32x4d", "SE-ResNeXt-50 32x4d", Shape((3, 4, 6, 3), groups=32, group_width=4, squeeze=True), SQUEEZE,
     TIMM, 27_559_896, 4_232_994_816),
    ("seresnext101-32x4d", "SE-ResNeXt-101 32x4d", Shape((3, 4, 23, 3), groups=32, group_width=4, squeeze=True),
     SQUEEZE, TIMM, 48_955_416, 7_974_739_968),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_macs=_macs,
            published_source=f"{_library} own parameters; MACs of torch's counter on them",
            build=partial(build, shape=_shape),
            dims={"image": 224},
        ),
    )
