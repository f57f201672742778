"""Iandola et al.: SqueezeNet, AlexNet-level accuracy with 50x fewer parameters (2016); torchvision's layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
"""Squeezed and expanded channels; the expansion is made twice, by 1x1 and by 3x3."""


def _fire(b: Builder, x: str, squeezed: int, expanded: int) -> str:
    x = b.relu(b.conv(x, squeezed, 1, bias=True, name="squeeze"))
    narrow = b.relu(b.conv(x, expanded, 1, bias=True, name="expand1x1"))
    return b.concat(narrow, b.relu(b.conv(x, expanded, 3, pad=1, bias=True, name="expand3x3")))


def build(b: Builder, batch: int, dims: Mapping[str, int], *, stem: tuple[int, int], pools: tuple[int, ...]) -> Model:
    """Stem (channels, kernel), eight fire modules with pooling before some, a convolution as classifier."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.relu(b.conv(x, stem[0], stem[1], stride=2, bias=True, name="stem"))
    for index, (squeezed, expanded) in enumerate(FIRES):
        x = b.max_pool(x, 3, 2, ceil=True) if index in pools else x
        with b.scope("fire", index + 2):
            x = _fire(b, x, squeezed, expanded)
    x = b.relu(b.conv(b.dropout(x, 0.5), 1000, 1, bias=True, name="classifier"))
    return b.finish(b.flatten(b.global_average_pool(x)))


for _name, _stem, _pools, _params, _macs in (
    ("squeezenet1-0", (96, 7), (0, 3, 7), 1_248_424, 818_924_576),
    ("squeezenet1-1", (64, 3), (0, 2, 4), 1_235_496, 349_151_936),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=f"SqueezeNet {_name.removeprefix('squeezenet').replace('-', '.')}",
            citation="Iandola et al. 2016, arXiv 1602.07360",
            published_params=_params,
            published_macs=_macs,
            published_source="torchvision's own parameters; MACs of torch's counter on them",
            build=partial(build, stem=_stem, pools=_pools),
            dims={"image": 224},
        ),
    )
