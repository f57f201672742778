"""Huang, Liu, van der Maaten and Weinberger: Densely Connected Networks (2016); torchvision's layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry


def build(
    b: Builder, batch: int, dims: Mapping[str, int], *, blocks: tuple[int, ...], growth: int, stem: int
) -> Model:
    """Stem, four blocks whose layers read every result before them, transitions that halve channels and sides."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.relu(b.batch_norm(b.conv(x, stem, 7, stride=2, pad=3, name="conv0"), "norm0"))
    x = b.max_pool(x, 3, 2, 1)
    for block, layers in enumerate(blocks):
        for layer in range(layers):
            with b.scope(f"denseblock{block + 1}", f"denselayer{layer + 1}"):
                y = b.conv(b.relu(b.batch_norm(x, "norm1")), 4 * growth, 1, name="conv1")
                y = b.conv(b.relu(b.batch_norm(y, "norm2")), growth, 3, pad=1, name="conv2")
                x = b.concat(x, y)
        if block < len(blocks) - 1:
            with b.scope(f"transition{block + 1}"):
                x = b.conv(b.relu(b.batch_norm(x, "norm")), b.shape(x)[1] // 2, 1)
                x = b.average_pool(x, 2, 2)
    x = b.relu(b.batch_norm(x, "norm5"))
    return b.finish(b.gemm(b.flatten(b.global_average_pool(x)), 1000, name="classifier"))


for _name, _blocks, _growth, _stem, _params, _macs in (
    ("densenet121", (6, 12, 24, 16), 32, 64, 7_978_856, 2_834_161_664),
    ("densenet161", (6, 12, 36, 24), 48, 96, 28_681_000, 7_727_907_072),
    ("densenet169", (6, 12, 32, 32), 32, 64, 14_149_480, 3_359_843_328),
    ("densenet201", (6, 12, 48, 32), 32, 64, 20_013_928, 4_291_365_888),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=f"DenseNet-{_name.removeprefix('densenet')}",
            citation="Huang et al. 2016, arXiv 1608.06993",
            published_params=_params,
            published_macs=_macs,
            published_source="torchvision's own parameters; MACs of torch's counter on them",
            build=partial(build, blocks=_blocks, growth=_growth, stem=_stem),
            dims={"image": 224},
        ),
    )
