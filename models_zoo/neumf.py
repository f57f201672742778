"""He et al.: Neural Collaborative Filtering (2017): NeuMF at the sizes of its public PyTorch and MLPerf versions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry


def build(b: Builder, batch: int, dims: Mapping[str, int], *, factors: int, layers: tuple[int, ...]) -> Model:
    """Products of ``factors`` wide vectors beside a perceptron over ``layers[0]`` wide pairs; dense gradients."""
    users, items = b.input("user", (batch,), "int64"), b.input("item", (batch,), "int64")
    sizes = (("user", users, dims["users"]), ("item", items, dims["items"]))
    product = [b.embedding(ids, rows, factors, name=f"mf_{name}") for name, ids, rows in sizes]
    x = b.concat(*(b.embedding(ids, rows, layers[0] // 2, name=f"mlp_{name}") for name, ids, rows in sizes))
    for index, width in enumerate(layers[1:]):
        x = b.relu(b.gemm(b.dropout(x), width, name=f"mlp.{index}"))
    x = b.concat(b.pointwise("Mul", *product), x)
    return b.finish(b.gemm(x, 1, name="predict"))


for _name, _title, _users, _items, _factors, _layers, _params, _source in (
    ("neumf-ml1m", "NeuMF, MovieLens 1M", 6040, 3706, 32, (256, 128, 64, 32), 1_602_657,
     "closed form at the defaults of the public PyTorch NCF (32 factors, 3 layers)"),
    ("neumf-ml20m", "NeuMF, MovieLens 20M", 138_493, 26_744, 64, (256, 256, 128, 64), 31_832_577,
     "recalled from MLPerf Training v0.5 logs; closed form"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation="He et al. 2017, arXiv 1708.05031",
            published_params=_params,
            published_source=_source,
            build=partial(build, factors=_factors, layers=_layers),
            dims={"users": _users, "items": _items},
            domain="recommendation",
        ),
    )
