"""Radosavovic et al.: Designing Network Design Spaces (2020): RegNetX and RegNetY; torchvision's layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.mobilenet import squeeze_excite


def _block(b: Builder, x: str, width: int, stride: int, group: int, squeeze: bool) -> str:
    """1x1, grouped 3x3 with the stride, squeeze and excitation, 1x1."""
    inputs = b.shape(x)[1]
    y = b.relu(b.batch_norm(b.conv(x, width, 1, name="a"), "a_bn"))
    y = b.relu(b.batch_norm(b.conv(y, width, 3, stride=stride, pad=1, groups=width // group, name="b"), "b_bn"))
    y = squeeze_excite(b, y, round(inputs / 4), Builder.relu, "Sigmoid") if squeeze else y
    y = b.batch_norm(b.conv(y, width, 1, name="c"), "c_bn")
    if stride != 1 or inputs != width:
        x = b.batch_norm(b.conv(x, width, 1, stride=stride, name="proj"), "proj_bn")
    return b.relu(b.add(x, y))


def build(
    b: Builder, batch: int, dims: Mapping[str, int], *, depths: tuple[int, ...], widths: tuple[int, ...], group: int,
    squeeze: bool,
) -> Model:  # fmt: skip
    """Stem, four stages that begin with a stride, classifier."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.relu(b.batch_norm(b.conv(x, 32, 3, stride=2, pad=1, name="stem"), "stem_bn"))
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        for index in range(depth):
            with b.scope(f"block{stage + 1}", index):
                x = _block(b, x, width, 1 if index else 2, min(group, width), squeeze)
    return b.finish(b.gemm(b.flatten(b.global_average_pool(x)), 1000))


for _name, _depths, _widths, _group, _params, _macs in (
    ("x-400mf", (1, 2, 7, 12), (32, 64, 160, 400), 16, 5_495_976, 413_812_608),
    ("x-800mf", (1, 3, 7, 5), (64, 128, 288, 672), 16, 7_259_656, 799_699_712),
    ("x-1-6gf", (2, 4, 10, 2), (72, 168, 408, 912), 24, 9_190_136, 1_602_849_792),
    ("x-3-2gf", (2, 6, 15, 2), (96, 192, 432, 1008), 48, 15_296_552, 3_176_621_952),
    ("x-8gf", (2, 5, 15, 1), (80, 240, 720, 1920), 120, 39_572_648, 7_995_132_416),
    ("x-16gf", (2, 6, 13, 1), (256, 512, 896, 2048), 128, 54_278_536, 15_940_755_456),
    ("x-32gf", (2, 7, 13, 1), (336, 672, 1344, 2520), 168, 107_811_560, 31_735_929_792),
    ("y-400mf", (1, 3, 6, 6), (48, 104, 208, 440), 8, 4_344_144, 401_842_848),
    ("y-800mf", (1, 3, 8, 2), (64, 144, 320, 784), 16, 6_432_512, 833_856_256),
    ("y-1-6gf", (2, 6, 17, 2), (48, 120, 336, 888), 24, 11_202_430, 1_612_076_160),
    ("y-3-2gf", (2, 5, 13, 1), (72, 216, 576, 1512), 24, 19_436_338, 3_176_482_752),
    ("y-8gf", (2, 4, 10, 1), (224, 448, 896, 2016), 56, 39_381_472, 8_473_070_592),
    ("y-16gf", (2, 4, 11, 1), (224, 448, 1232, 3024), 112, 83_590_140, 15_911_510_272),
    ("y-32gf", (2, 5, 12, 1), (232, 696, 1392, 3712), 232, 145_046_770, 32_279_552_832),
):
    ZOO.add(
        f"regnet-{_name}",
        ZooEntry(
            title=f"RegNet{_name[0].upper()} {_name[2:].replace('-', '.').upper()}",
            citation="Radosavovic et al. 2020, arXiv 2003.13678",
            published_params=_params,
            published_macs=_macs,
            published_source="torchvision's own parameters; MACs of torch's counter on them",
            build=partial(build, depths=_depths, widths=_widths, group=_group, squeeze=_name.startswith("y")),
            dims={"image": 224},
        ),
    )
