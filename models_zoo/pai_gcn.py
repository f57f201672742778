"""PAI's GCN: graph convolutions over sampled neighbours (Hamilton, Ying and Leskovec 2017, arXiv 1706.02216).

The study gives sizes alone (recalled): 207 MB of layers and 54 GB of tables with one slot, 330.7 GFLOP, 1.2 MB of
input and 3 GB of network traffic for 512 samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.pai_study import CASES, STUDY

CASE = CASES["pai-gcn"]
NEAR, FAR = 14, 20
"""Neighbours of the target, and of each of those: chosen so that the ids of 295 nodes a sample are 1.2 MB."""

FIELDS, FIELD_WIDTH = 17, 128
"""A node's row holds its fields side by side: chosen so that the rows touched are 3 GB out and back, dense part taken
off. The field's width is assumed."""

HIDDEN = 128
"""Of both convolutions: chosen so that a step is 330.7 GFLOP."""

TOWER = (4096, 4096, 2048)
"""Layers on the target's vector: chosen so that all layers, with one slot, are 207 MB."""

ROWS = int(CASE.embedding_bytes) // (4 * CASE.copies * FIELDS * FIELD_WIDTH)
"""Nodes of the table: chosen so that it is 54 GB with one slot."""


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Rows of the target and two rings of neighbours, two convolutions that draw the rings in, layers, one score."""
    b.note(
        "assumed: the study gives sizes; neighbours are chosen so that the input copy is, fields so that traffic is, "
        "the convolutions' width so that FLOPs are, the last layers and the table so that weights are"
    )
    near, far = dims["near"], dims["far"]
    nodes = b.input("nodes", (batch, 1 + near + near * far), "int64")
    x = b.embedding(nodes, ROWS, FIELDS * FIELD_WIDTH, name="node_table", sparse=True)
    x = b.relu(b.linear(x, HIDDEN, name="fields"))
    with b.scope("convolution", 0):
        outer = b.reshape(b.part(x, 1 + near, b.shape(x)[1], name="outer", axis=1), (batch, near, far, HIDDEN))
        around = b.concat(_ring(b, x, near), b.reduce("ReduceMean", outer, 2))
        x = _convolution(b, b.part(x, 0, 1 + near, name="self", axis=1), around)
    with b.scope("convolution", 1):
        x = _convolution(b, b.part(x, 0, 1, name="self", axis=1), _ring(b, x, near))
    x = b.reshape(x, (batch, HIDDEN))
    for index, width in enumerate(TOWER):
        x = b.relu(b.gemm(x, width, name=f"tower.{index}"))
    return b.finish(b.gemm(x, 1, name="score"))


def _ring(b: Builder, x: str, near: int) -> str:
    """The mean of the target's neighbours ``[B, 1, HIDDEN]``."""
    mean = b.reduce("ReduceMean", b.part(x, 1, 1 + near, name="ring", axis=1), 1)
    return b.reshape(mean, (b.shape(x)[0], 1, HIDDEN))


def _convolution(b: Builder, x: str, around: str) -> str:
    """A node beside the mean of its neighbours, through one layer."""
    return b.relu(b.linear(b.concat(x, around, axis=2), HIDDEN))


ZOO.add(
    "pai-gcn",
    ZooEntry(
        title="PAI's GCN (assumed layers)",
        citation=STUDY,
        published_params=CASE.params,
        published_source="recalled: 207 MB dense and 54 GB of tables; assumed: two copies",
        build=build,
        dims={"near": NEAR, "far": FAR},
        domain="recommendation",
        rounding=2_000_000,
        batch=CASE.batch,
    ),
)
