"""Simonyan and Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition (2014)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTHS = (64, 128, 256, 512, 512)


def build(b: Builder, batch: int, dims: Mapping[str, int], *, convolutions: tuple[int, ...]) -> Model:
    """Five groups of 3x3 convolutions with pooling, then three fully connected layers with dropout."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    index = 0
    for width, count in zip(WIDTHS, convolutions, strict=True):
        for _ in range(count):
            with b.scope("features", index):
                x = b.relu(b.conv(x, width, 3, pad=1, bias=True))
            index += 2
        x = b.max_pool(x, 2, 2)
        index += 1
    b.note_classifier_grid(x, side=7)
    x = b.flatten(x)
    with b.scope("classifier"):
        for name in ("0", "3"):
            x = b.pointwise("Dropout", b.relu(b.gemm(x, 4096, name=name)))
        return b.finish(b.gemm(x, 1000, name="6"))


for _name, _convolutions, _params, _macs in (
    ("vgg16", (2, 2, 3, 3, 3), 138_357_544, 15_470_264_320),
    ("vgg19", (2, 2, 4, 4, 4), 143_667_240, 19_632_062_464),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=f"VGG-{_name.removeprefix('vgg')}",
            citation="Simonyan and Zisserman 2014, arXiv 1409.1556",
            published_params=_params,
            published_macs=_macs,
            published_source="recalled from torchvision's model card (GFLOPs rounded there); MACs counted",
            build=partial(build, convolutions=_convolutions),
            dims={"image": 224},
        ),
    )
