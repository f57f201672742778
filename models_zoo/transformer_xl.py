"""Dai et al.: Transformer-XL (2019), at the sizes of NVIDIA's WikiText-103 example.

How often each cluster of the adaptive softmax is read depends on the data: shares are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

CLUSTERS = (19_997, 20_000, 160_000, 67_738)
"""Words of WikiText-103, the frequent ones first."""
PERMILLE = (930, 30, 35, 5)  # assumed: tokens of each cluster


@dataclass(frozen=True)
class Shape:
    """``divisor``: how much narrower every next cluster's rows are; 1 keeps the full width, without projections."""

    layers: int
    width: int
    heads: int
    inner: int
    divisor: int

    def rows_width(self, cluster: int) -> int:
        """Width of the rows of a cluster."""
        return self.width // int(self.divisor**cluster)

    def params(self) -> int:
        """Five square matrices and a feed-forward a layer, tables, projections, cluster logits, position biases."""
        d, f = self.width, self.inner
        layers = self.layers * (5 * d * d + 2 * d * f + f + d + 4 * d)
        tables = sum(rows * (self.rows_width(i) + 1) for i, rows in enumerate(CLUSTERS))
        # the first projection of the head is not tied to the one of the table
        projections = sum(d * self.rows_width(i) for i in range(4)) + d * d if self.divisor > 1 else 0
        return layers + tables + projections + 3 * (d + 1) + 2 * d


def _shares(tokens: int) -> list[int]:
    """Tokens of each cluster, at least one of each rare one."""
    rare = [max(1, tokens * share // 1000) for share in PERMILLE[1:]]
    return [max(1, tokens - sum(rare)), *rare]


def _tables(b: Builder, shape: Shape) -> tuple[list[str], list[str]]:
    """Rows of every cluster, and what brings them to full width (nothing for a divisor of 1)."""
    widths = [shape.rows_width(index) for index in range(len(CLUSTERS))]
    rows = [
        b.param(f"table.{i}", (count, width)) for i, (count, width) in enumerate(zip(CLUSTERS, widths, strict=True))
    ]
    if shape.divisor == 1:
        return rows, []
    return rows, [b.param(f"projection.{i}", (width, shape.width)) for i, width in enumerate(widths)]


def _embedded(b: Builder, tokens: int, tables: list[str], projections: list[str], width: int) -> str:
    """Rows of each cluster's tokens, projected, put together: ``[tokens, width]``."""
    parts = []
    for index, (count, table) in enumerate(zip(_shares(tokens), tables, strict=True)):
        ids = b.input(f"cluster_{index}", (count,), "int64")
        x = b.op("Gather", [table, ids], (count, b.shape(table)[1]), name=f"rows.{index}", axis=0)
        if projections:
            x = b.op("MatMul", [x, projections[index]], (count, width), name=f"projected.{index}")
        parts.append(x)
    return b.concat(*parts, axis=0)


def _head(b: Builder, x: str, tables: list[str], projections: list[str]) -> list[str]:
    """Frequent words and three cluster logits for all tokens; the rows of a cluster for its own tokens."""
    tokens, width = b.shape(x)
    outputs = []
    for index, (count, table) in enumerate(zip(_shares(tokens), tables, strict=True)):
        with b.scope("head", index):
            y = x
            if index:
                chosen = b.constant("chosen", (count,))
                y = b.op("Gather", [x, chosen], (count, width), name="own", axis=0)
            rows = b.shape(table)
            if projections and index == 0:
                y = b.linear(y, width, bias=False, name="projection")
            elif projections:
                back = b.transpose(projections[index], (1, 0))
                y = b.op("MatMul", [y, back], (b.shape(y)[0], rows[1]), name="narrow")
            bias = b.param("bias", (rows[0],))
            logits = b.op("Gemm", [y, table, bias], (b.shape(y)[0], rows[0]), name="logits", transB=1)
            if index == 0:
                logits = b.concat(logits, b.gemm(x, 3, name="clusters"))
            outputs.append(b.pointwise("LogSoftmax", logits, axis=-1))
    return outputs


def _attention(
    b: Builder, x: str, past: str, distances: str, biases: tuple[str, str], mask: str, shape: Shape
) -> str:
    """Relative attention over past and present; the part of distances is shifted into place."""
    batch, seq, width = b.shape(x)
    heads, size = shape.heads, width // shape.heads
    both = b.concat(past, x)
    keys = b.shape(both)[1]
    qkv = b.linear(both, 3 * width, bias=False, name="qkv_net")
    q, k, v = (b.part(qkv, i * width, (i + 1) * width, name=part) for i, part in enumerate("qkv"))
    q = b.reshape(b.part(q, keys - seq, keys, name="q_last", axis=1), (batch, seq, heads, size))
    k = b.transpose(b.reshape(k, (batch, keys, heads, size)), (0, 2, 3, 1))
    v = b.transpose(b.reshape(v, (batch, keys, heads, size)), (0, 2, 1, 3))
    r = b.reshape(b.linear(distances, width, bias=False, name="r_net"), (1, keys, heads, size))
    r = b.transpose(r, (0, 2, 3, 1))
    square = (batch, heads, seq, keys)
    content = b.op("MatMul", [b.transpose(b.add(q, biases[0]), (0, 2, 1, 3)), k], square, name="content")
    place = b.op("MatMul", [b.transpose(b.add(q, biases[1]), (0, 2, 1, 3)), r], square, name="place")
    padded = b.concat(b.constant("zeros", (batch, heads, seq, 1), "float32"), place, axis=3)
    padded = b.reshape(padded, (batch, heads, keys + 1, seq))
    place = b.reshape(b.part(padded, 1, keys + 1, name="shifted", axis=2), square)
    scores = b.pointwise("Mul", b.add(content, place), b.constant("scale", (), "float32"))
    weights = b.dropout(b.pointwise("Softmax", b.add(scores, mask), axis=-1))
    y = b.op("MatMul", [weights, v], (batch, heads, seq, size), name="context")
    y = b.reshape(b.transpose(y, (0, 2, 1, 3)), (batch, seq, width))
    return b.layer_norm(b.add(x, b.dropout(b.linear(y, width, bias=False, name="o_net"))), "layer_norm")


def build(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape) -> Model:
    """``seq`` new tokens over a memory of ``memory`` states a layer."""
    seq, memory, width = dims["seq"], dims["memory"], shape.width
    tables, projections = _tables(b, shape)
    words = _embedded(b, batch * seq, tables, projections, width)
    rest = b.shape(words)[0]
    if rest != batch * seq:
        raise b.refuse("seq", seq, "sizes of at least four tokens a step, one of each cluster")
    x = b.dropout(b.pointwise("Mul", b.reshape(words, (batch, seq, width)), b.constant("root", (), "float32")))
    distances = b.dropout(b.constant("sinusoids", (1, seq + memory, width), "float32"))
    size = width // shape.heads
    biases = b.param("r_w_bias", (shape.heads, size)), b.param("r_r_bias", (shape.heads, size))
    mask = b.mask("causal_mask", (1, 1, seq, seq + memory))
    for layer in range(shape.layers):
        with b.scope("layers", layer):
            past = b.input(f"memory_{layer}", (batch, memory, width))
            with b.scope("dec_attn"):
                x = _attention(b, x, past, distances, biases, mask, shape)
            with b.scope("pos_ff"):
                y = b.dropout(b.relu(b.linear(x, shape.inner, name="0")))
                x = b.layer_norm(b.add(x, b.dropout(b.linear(y, width, name="3"))), "layer_norm")
    shares = ", ".join(f"{share / 10:g} %" for share in PERMILLE)
    b.note(f"assumed: {shares} of the tokens fall into the four clusters of the adaptive softmax")
    return b.finish(*_head(b, b.reshape(b.dropout(x), (batch * seq, width)), tables, projections))


BASE, LARGE = Shape(16, 512, 8, 2048, 1), Shape(18, 1024, 16, 4096, 4)
for _name, _title, _shape, _seq in (
    ("transformer-xl-base", "Transformer-XL base", BASE, 192),
    ("transformer-xl-large", "Transformer-XL large", LARGE, 384),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation="Dai et al. 2019, arXiv 1901.02860; NVIDIA DeepLearningExamples, Transformer-XL (wt103_*.yaml)",
            published_params=_shape.params(),
            published_source="closed form; recalled: NVIDIA states 192 million for base",
            build=partial(build, shape=_shape),
            dims={"seq": _seq, "memory": _seq},
            domain="language",
        ),
    )
