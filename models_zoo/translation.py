"""Vaswani et al.: Attention Is All You Need (2017): WMT base and big, and the Multi30k example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry


@dataclass(frozen=True)
class Shape:
    """Width, inner width, heads and layers (of the encoder, and as many of the decoder)."""

    width: int
    inner: int
    heads: int
    layers: int = 6

    def params(self) -> int:
        """All but the tables: four projections an attention, two layers, two values a normalisation."""
        attention = 4 * (self.width + 1) * self.width
        forward = (self.width + 1) * self.inner + (self.inner + 1) * self.width
        return self.layers * (3 * attention + 2 * forward + 5 * 2 * self.width)


def _attend(b: Builder, x: str, memory: str, shape: Shape, mask: str, name: str) -> str:
    """Attention of ``x`` over ``memory``, added and normalised (post-norm)."""
    with b.scope(name):
        q = b.linear(x, shape.width, name="q")
        k, v = (b.linear(memory, shape.width, name=part) for part in "kv")
        y = b.linear(b.attention(q, k, v, shape.heads, mask, dropout=True), shape.width, name="out")
        return b.layer_norm(b.add(b.dropout(y), x))


def _forward(b: Builder, x: str, shape: Shape) -> str:
    with b.scope("ffn"):
        y = b.linear(b.dropout(b.relu(b.linear(x, shape.inner, name="1"))), shape.width, name="2")
        return b.layer_norm(b.add(b.dropout(y), x))


def _embedded(b: Builder, ids: str, table: str, width: int) -> str:
    """Rows scaled by the root of the width, sinusoids added."""
    batch, seq = b.shape(ids)
    with b.scope(f"{ids}_embedding"):
        x = b.op("Gather", [table, ids], (batch, seq, width), name="rows", axis=0)
        x = b.pointwise("Mul", x, b.constant("root", (), "float32"))
        return b.dropout(b.add(x, b.constant("sinusoids", (1, seq, width), "float32")))


def build(
    b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape, one_table: bool, sparse: bool = False
) -> Model:
    """Encoder over ``source`` tokens, decoder over ``target``; the head is the target's table.

    ``sparse``: a source's table of its own has gradients by rows.
    """
    source, target = (b.input(name, (batch, dims[name]), b.id_dtype) for name in ("source", "target"))
    if one_table:
        read = written = b.param("table", (dims["vocabulary"], shape.width))
    else:
        read = b.param("source_table", (dims["source_vocabulary"], shape.width), sparse=sparse)
        written = b.param("target_table", (dims["target_vocabulary"], shape.width))
    padding = b.constant("padding_mask", (batch, 1, 1, dims["source"]), "float32")
    causal = b.constant("causal_mask", (1, 1, dims["target"], dims["target"]), "float32")
    memory = _embedded(b, source, read, shape.width)
    for layer in range(shape.layers):
        with b.scope("encoder", layer):
            memory = _forward(b, _attend(b, memory, memory, shape, padding, "self"), shape)
    x = _embedded(b, target, written, shape.width)
    for layer in range(shape.layers):
        with b.scope("decoder", layer):
            x = _attend(b, x, x, shape, causal, "self")
            x = _forward(b, _attend(b, x, memory, shape, padding, "cross"), shape)
    return b.finish(b.tied_head(x, written))


BASE, BIG = Shape(512, 2048, 8), Shape(1024, 4096, 16)
WORD_PIECES = 37_000
for _name, _title, _shape, _paper in (
    ("transformer-base", "Transformer base, WMT", BASE, 65),
    ("transformer-big", "Transformer big, WMT", BIG, 213),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation="Vaswani et al. 2017, arXiv 1706.03762",
            published_params=WORD_PIECES * _shape.width + _shape.params(),
            published_source=(
                "torch.nn.Transformer without its two final normalisations, and one shared table; "
                f"the paper's Table 3 says {_paper} million"
            ),
            build=partial(build, shape=_shape, one_table=True),
            dims={"source": 32, "target": 32, "vocabulary": WORD_PIECES},
            domain="language",
        ),
    )
ZOO.add(
    "transformer-multi30k",
    ZooEntry(
        title="Transformer base, Multi30k",
        citation="Vaswani et al. 2017, arXiv 1706.03762; github.com/jadore801120/attention-is-all-you-need-pytorch",
        published_params=(2911 + 3149) * 512 + BASE.params(),
        published_source="closed form; assumed: the sizes of both vocabularies",
        build=partial(build, shape=BASE, one_table=False),
        dims={"source": 16, "target": 16, "source_vocabulary": 2911, "target_vocabulary": 3149},
        domain="language",
    ),
)
