"""Cheng et al.: Wide & Deep Learning for Recommender Systems (2016), in the form of the Criteo benchmarks."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

DENSE, WIDE, DEEP = 13, 2, 26
"""Fields: numbers, keys of the linear part, keys of the deep part."""


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """A linear part over 2 keys beside a perceptron over 26 embedded keys and 13 numbers; tables are sparse."""
    numbers = b.input("dense", (batch, DENSE))
    wide = b.embedding(
        b.input("wide_keys", (batch, WIDE), "int64"), dims["wide_vocabulary"], 1, name="wide", sparse=True
    )
    wide = b.op("ReduceSum", [wide, b.integers("wide_axis", [1])], (batch, 1), keepdims=0)
    keys = b.input("deep_keys", (batch, DEEP), "int64")
    deep = b.embedding(keys, dims["deep_vocabulary"], dims["embedding"], name="deep", sparse=True)
    x = b.concat(b.reshape(deep, (batch, DEEP * dims["embedding"])), numbers)
    for index in range(dims["layers"]):
        x = b.dropout(b.relu(b.gemm(x, dims["hidden"], name=f"fc{index}")), 0.5)
    return b.finish(b.add(b.gemm(x, 1, name="out"), wide))


_INPUTS = DEEP * 16 + DENSE
ZOO.add(
    "wide-deep-criteo",
    ZooEntry(
        title="Wide & Deep, Criteo",
        citation="Cheng et al. 2016, arXiv 1606.07792; sizes: Oneflow-Inc/DLPerf, HugeCTR/scripts/wdl.py",
        published_params=3_200_000 * (1 + 16) + (_INPUTS + 1) * 1024 + 6 * (1024 + 1) * 1024 + 1024 + 1,
        published_source="closed form at the benchmark's widths; 3.2 million keys a table",
        build=build,
        dims={
            "deep_vocabulary": 3_200_000,
            "wide_vocabulary": 3_200_000,
            "embedding": 16,
            "hidden": 1024,
            "layers": 7,
        },
        domain="recommendation",
    ),
)
