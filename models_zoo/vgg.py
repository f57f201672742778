"""Simonyan and Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition (2014)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTHS = (64, 128, 256, 512, 512)


def build(b: Builder, batch: int, dims: Mapping[str, int], *, convolutions: tuple[int, ...], norm: bool) -> Model:
    """Five groups of 3x3 convolutions with pooling, then three fully connected layers with dropout."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    index = 0
    for width, count in zip(WIDTHS, convolutions, strict=True):
        for _ in range(count):
            with b.scope("features", index):
                x = b.conv(x, width, 3, pad=1, bias=True)
                x = b.relu(b.batch_norm(x) if norm else x)
            index += 2 + norm
        x = b.max_pool(x, 2, 2)
        index += 1
    b.note_classifier_grid(x, side=7)
    x = b.flatten(x)
    with b.scope("classifier"):
        for name in ("0", "3"):
            x = b.dropout(b.relu(b.gemm(x, 4096, name=name)), 0.5)
        return b.finish(b.gemm(x, 1000, name="6"))


for _depth, _convolutions, _params, _norm_params, _macs in (
    (11, (1, 1, 2, 2, 2), 132_863_336, 132_868_840, 7_609_090_048),
    (13, (2, 2, 2, 2, 2), 133_047_848, 133_053_736, 11_308_466_176),
    (16, (2, 2, 3, 3, 3), 138_357_544, 138_365_992, 15_470_264_320),
    (19, (2, 2, 4, 4, 4), 143_667_240, 143_678_248, 19_632_062_464),
):
    for _norm in (False, True):
        ZOO.add(
            f"vgg{_depth}-bn" if _norm else f"vgg{_depth}",
            ZooEntry(
                title=f"VGG-{_depth}" + (" with batch normalisation" if _norm else ""),
                citation="Simonyan and Zisserman 2014, arXiv 1409.1556",
                published_params=_norm_params if _norm else _params,
                published_macs=_macs,
                published_source="torchvision's own parameters; MACs of torch's counter on them",
                build=partial(build, convolutions=_convolutions, norm=_norm),
                dims={"image": 224},
            ),
        )
