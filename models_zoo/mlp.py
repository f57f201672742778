"""A plain multilayer perceptron on 28 x 28 images; small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTHS = (784, 512, 512, 10)


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """784 -> 512 -> 512 -> 10 with ReLU between."""
    x = b.input("x", (batch, WIDTHS[0]))
    for index, width in enumerate(WIDTHS[1:]):
        x = b.gemm(x, width, name=f"fc{index + 1}")
        if width != WIDTHS[-1]:
            x = b.relu(x)
    return b.finish(x)


ZOO.add(
    "mlp",
    ZooEntry(
        title="MLP 784-512-512-10",
        citation="plain multilayer perceptron",
        published_params=784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10,
        published_macs=784 * 512 + 512 * 512 + 512 * 10,
        published_source="arithmetic",
        build=build,
    ),
)
