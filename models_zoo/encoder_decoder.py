"""Lewis et al.: BART (2019), and Raffel et al.: T5 (2019); transformers' layouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.bert import checked_length

BART_WORDS, BART_WIDTH, BART_HEADS, BART_LAYERS, BART_POSITIONS = 50265, 1024, 16, 12, 1026
T5_WORDS, T5_BUCKETS = 32128, 32


def _bart_attention(b: Builder, x: str, memory: str, mask: str, name: str) -> str:
    with b.scope(name):
        q = b.linear(x, BART_WIDTH, name="q_proj")
        k, v = (b.linear(memory, BART_WIDTH, name=f"{part}_proj") for part in "kv")
        y = b.linear(b.attention(q, k, v, BART_HEADS, mask, dropout=True), BART_WIDTH, name="out_proj")
        return b.layer_norm(b.add(x, b.dropout(y)))


def _bart_forward(b: Builder, x: str) -> str:
    y = b.pointwise("Gelu", b.linear(x, 4 * BART_WIDTH, name="fc1"))
    return b.layer_norm(b.add(x, b.dropout(b.linear(y, BART_WIDTH, name="fc2"))), "final_layer_norm")


def bart(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Post-norm encoder and decoder with learned positions, tables and head shared."""
    table = b.param("shared.weight", (BART_WORDS, BART_WIDTH))
    sides = {}
    for side in ("source", "target"):
        seq = checked_length(b, dims, BART_POSITIONS - 2, side)
        ids = b.input(side, (batch, seq), "int64")
        with b.scope(f"{side}_embedding"):
            x = b.op("Gather", [table, ids], (batch, seq, BART_WIDTH), name="words", axis=0)
            rows = b.embedding(b.constant("ids", (1, seq)), BART_POSITIONS, BART_WIDTH, name="positions")
            sides[side] = b.dropout(b.layer_norm(b.add(x, rows)))
    memory, x = sides["source"], sides["target"]
    padding = b.mask("padding_mask", (batch, 1, 1, dims["source"]))
    causal = b.mask("causal_mask", (1, 1, dims["target"], dims["target"]))
    for layer in range(BART_LAYERS):
        with b.scope("encoder", layer):
            memory = _bart_forward(b, _bart_attention(b, memory, memory, padding, "self_attn"))
    for layer in range(BART_LAYERS):
        with b.scope("decoder", layer):
            x = _bart_attention(b, x, x, causal, "self_attn")
            x = _bart_forward(b, _bart_attention(b, x, memory, padding, "encoder_attn"))
    return b.finish(b.tied_head(x, table))


@dataclass(frozen=True)
class T5:
    """Layers (of each side), width, inner width, heads of 64 channels."""

    layers: int
    width: int
    inner: int
    heads: int


def _bias(b: Builder, queries: int, keys: int, heads: int) -> str:
    """A learned value for every head and bucket of distances: ``[1, heads, queries, keys]``."""
    buckets = b.constant("buckets", (queries, keys))
    x = b.embedding(buckets, T5_BUCKETS, heads, name="relative_attention_bias")
    return b.reshape(b.transpose(x, (2, 0, 1)), (1, heads, queries, keys))


def _t5_attention(b: Builder, x: str, memory: str | None, bias: str | None, shape: T5, name: str) -> str:
    inner = 64 * shape.heads
    with b.scope(name):
        y = b.rms_norm(x)
        q = b.linear(y, inner, bias=False, name="q")
        k, v = (b.linear(memory or y, inner, bias=False, name=part) for part in "kv")
        y = b.attention(q, k, v, shape.heads, bias, dropout=True, scaled=False)
        return b.add(x, b.dropout(b.linear(y, shape.width, bias=False, name="o")))


def _t5_forward(b: Builder, x: str, shape: T5) -> str:
    with b.scope("ff"):
        y = b.dropout(b.relu(b.linear(b.rms_norm(x), shape.inner, bias=False, name="wi")))
        return b.add(x, b.dropout(b.linear(y, shape.width, bias=False, name="wo")))


def t5(b: Builder, batch: int, dims: Mapping[str, int], *, shape: T5) -> Model:
    """Pre-norm by root mean square, no biases, attention biased by distance, tables and head shared."""
    source, target = (b.input(side, (batch, dims[side]), "int64") for side in ("source", "target"))
    table = b.param("shared.weight", (T5_WORDS, shape.width))
    memory = b.dropout(b.op("Gather", [table, source], (*b.shape(source), shape.width), name="words", axis=0))
    with b.scope("encoder"):
        bias = _bias(b, dims["source"], dims["source"], shape.heads)
        for layer in range(shape.layers):
            with b.scope(layer):
                memory = _t5_forward(b, _t5_attention(b, memory, None, bias, shape, "self"), shape)
        memory = b.dropout(b.rms_norm(memory, "final"))
    x = b.dropout(b.op("Gather", [table, target], (*b.shape(target), shape.width), name="target_words", axis=0))
    with b.scope("decoder"):
        bias = _bias(b, dims["target"], dims["target"], shape.heads)
        for layer in range(shape.layers):
            with b.scope(layer):
                x = _t5_attention(b, x, None, bias, shape, "self")
                x = _t5_forward(b, _t5_attention(b, x, memory, None, shape, "cross"), shape)
        x = b.dropout(b.rms_norm(x, "final"))
    return b.finish(b.tied_head(x, table))


for _name, _title, _build, _citation, _length, _params, _source in (
    ("bart-large", "BART-large", bart, "Lewis et al. 2019, arXiv 1910.13461", 128, 406_291_456,
     "transformers BartForConditionalGeneration"),
    ("t5-small", "T5-small", partial(t5, shape=T5(6, 512, 2048, 8)), "Raffel et al. 2019, arXiv 1910.10683", 512,
     60_506_624, "transformers T5ForConditionalGeneration"),
    ("t5-base", "T5-base", partial(t5, shape=T5(12, 768, 3072, 12)), "Raffel et al. 2019, arXiv 1910.10683", 512,
     222_903_552, "transformers T5ForConditionalGeneration"),
    ("t5-large", "T5-large", partial(t5, shape=T5(24, 1024, 4096, 16)), "Raffel et al. 2019, arXiv 1910.10683", 512,
     737_668_096, "transformers T5ForConditionalGeneration"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_source=_source,
            build=_build,
            dims={"source": _length, "target": _length},
            domain="language",
        ),
    )
