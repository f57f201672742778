"""Krizhevsky: One weird trick for parallelizing convolutional neural networks (2014); torchvision's AlexNet."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

# index in the feature stack, channels, kernel, stride, padding, pooled after
CONVOLUTIONS = (
    (0, 64, 11, 4, 2, True),
    (3, 192, 5, 1, 2, True),
    (6, 384, 3, 1, 1, False),
    (8, 256, 3, 1, 1, False),
    (10, 256, 3, 1, 1, True),
)


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Five convolutions with overlapping 3x3 pooling, then three fully connected layers with dropout."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    with b.scope("features"):
        for index, channels, kernel, stride, pad, pooled in CONVOLUTIONS:
            x = b.relu(b.conv(x, channels, kernel, stride=stride, pad=pad, bias=True, name=str(index)))
            if pooled:
                x = b.max_pool(x, 3, 2)
    b.note_classifier_grid(x, side=6)
    x = b.flatten(x)
    with b.scope("classifier"):
        for name in ("1", "4"):
            x = b.relu(b.gemm(b.pointwise("Dropout", x), 4096, name=name))
        return b.finish(b.gemm(x, 1000, name="6"))


ZOO.add(
    "alexnet",
    ZooEntry(
        title="AlexNet",
        citation="Krizhevsky 2014, arXiv 1404.5997",
        published_params=61_100_840,
        published_macs=714_188_480,
        published_source="recalled from torchvision's model card (GFLOPs rounded there); MACs counted",
        build=build,
        dims={"image": 224},
    ),
)
