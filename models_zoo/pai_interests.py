"""PAI's Multi-Interests: a user's interests drawn from a sequence of behaviours by attention.

Self-attentive extraction of Lin et al. (2017, arXiv 1703.03130) as Cen et al. (2020, arXiv 2005.09347) use it for
recommendation. The study gives sizes alone (recalled): 1.19 MB of layers and 239.45 GB of tables with one slot,
105.8 GFLOP, 261 MB of input and 122 MB of network traffic for 2,048 samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.pai_study import CASES, STUDY

CASE = CASES["pai-multi-interests"]
WIDTH = 64  # assumed
HEADS, INTERESTS = 4, 4  # assumed
LAYERS = 2
"""Attention layers: with 100 behaviours, chosen so that a step is 105.8 GFLOP."""

BEHAVIOURS, ATTRIBUTES = 100, 158
"""A sample's behaviours, and ids that describe each: chosen so that the input copy is 261 MB in int64."""

ATTRIBUTE_ROWS = 22_000
"""Their values: the rows that a step touches are 122 MB out and back, so most of 16,000 ids a sample must repeat.
Chosen so that these rows and one item a behaviour are that traffic."""

ITEM_ROWS = int(CASE.embedding_bytes) // (4 * CASE.copies * WIDTH) - ATTRIBUTE_ROWS
"""Chosen so that both tables, with one slot, are 239.45 GB."""

HIDDEN = 256  # assumed
SCORE = (230, 64)
"""Widths of the last layers: chosen so that all layers, with one slot, are 1.19 MB."""


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Items with their summed attributes, attention layers, interests as weighted means, a score for a candidate."""
    b.note(
        "assumed: the study gives sizes; behaviours and layers are chosen so that FLOPs are, attributes so that the "
        "input copy is, tables so that their size and the rows touched are"
    )
    length, width = dims["behaviours"], WIDTH
    items = b.input("items", (batch, length + 1), "int64")
    attributes = b.input("attributes", (batch, length, dims["attributes"]), "int64")
    rows = b.embedding(items, ITEM_ROWS, width, name="item_table", sparse=True)
    told = b.embedding(attributes, ATTRIBUTE_ROWS, width, name="attribute_table", sparse=True)
    candidate = b.reshape(b.part(rows, length, length + 1, name="candidate", axis=1), (batch, width))
    x = b.add(b.part(rows, 0, length, name="behaviours", axis=1), b.reduce("ReduceSum", told, 2))
    for layer in range(dims["layers"]):
        with b.scope("attention", layer):
            x = _attention_layer(b, x)
    with b.scope("interests"):
        shares = b.linear(
            b.pointwise("Tanh", b.linear(x, HIDDEN, name="hidden")), INTERESTS, bias=False, name="heads"
        )
        shares = b.pointwise("Softmax", b.transpose(shares, (0, 2, 1)), axis=-1)
        found = b.op("MatMul", [shares, x], (batch, INTERESTS, width), name="weighted")
    x = b.concat(b.reshape(found, (batch, INTERESTS * width)), candidate)
    for index, size in enumerate(SCORE):
        x = b.relu(b.gemm(x, size, name=f"score.{index}"))
    return b.finish(b.gemm(x, 1, name="score.out"))


def _attention_layer(b: Builder, x: str) -> str:
    """Self-attention and one layer a position, each added and normalised."""
    q, k, v = (b.linear(x, WIDTH, name=part) for part in "qkv")
    x = b.layer_norm(b.add(b.linear(b.attention(q, k, v, HEADS), WIDTH, name="out"), x), "norm1")
    return b.layer_norm(b.add(b.relu(b.linear(x, WIDTH, name="position")), x), "norm2")


ZOO.add(
    "pai-multi-interests",
    ZooEntry(
        title="PAI's Multi-Interests (assumed layers)",
        citation=STUDY,
        published_params=CASE.params,
        published_source="recalled: 1.19 MB dense and 239.45 GB of tables; assumed: two copies",
        build=build,
        dims={"behaviours": BEHAVIOURS, "attributes": ATTRIBUTES, "layers": LAYERS},
        domain="recommendation",
        rounding=1_000,
        batch=CASE.batch,
    ),
)
