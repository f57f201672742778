"""Devlin et al.: BERT (2018), and Radford et al.: GPT-2 (2019); transformers' layouts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

BERT_VOCABULARY = 30522
BERT_POSITIONS = 512
GPT2_VOCABULARY = 50257
GPT2_POSITIONS = 1024
FLOAT = 1
"""TensorProto.DataType, for Cast."""


def _length(b: Builder, dims: Mapping[str, int], positions: int) -> int:
    seq = dims["seq"]
    if seq > positions:
        raise b.refuse("seq", seq, f"at most {positions} tokens, the rows of its position table")
    return seq


def bert(b: Builder, batch: int, dims: Mapping[str, int], *, layers: int, width: int, heads: int) -> Model:
    """Post-norm encoder with pooler (BertModel); ``seq`` tokens, at most 512."""
    seq = _length(b, dims, BERT_POSITIONS)
    ids = b.input("input_ids", (batch, seq), "int64")
    mask = b.input("attention_mask", (batch, seq), "int64")
    types = b.input("token_type_ids", (batch, seq), "int64")
    bias = b.op("Cast", [b.reshape(mask, (batch, 1, 1, seq))], (batch, 1, 1, seq), name="mask", to=FLOAT)
    with b.scope("embeddings"):
        x = b.embedding(ids, BERT_VOCABULARY, width, name="word_embeddings")
        x = b.pointwise("Add", x, b.embedding(types, 2, width, name="token_type_embeddings"))
        positions = b.constant("position_ids", (1, seq))
        x = b.pointwise("Add", x, b.embedding(positions, BERT_POSITIONS, width, name="position_embeddings"))
        x = b.dropout(b.layer_norm(x, "LayerNorm"))
    for layer in range(layers):
        with b.scope("encoder", "layer", layer):
            with b.scope("attention", "self"):
                q, k, v = (b.linear(x, width, name=part) for part in ("query", "key", "value"))
                y = b.attention(q, k, v, heads, bias, dropout=True)
            with b.scope("attention", "output"):
                y = b.dropout(b.linear(y, width, name="dense"))
                x = b.layer_norm(b.pointwise("Add", y, x), "LayerNorm")
            y = b.pointwise("Gelu", b.linear(x, 4 * width, name="intermediate.dense"))
            y = b.dropout(b.linear(y, width, name="output.dense"))
            x = b.layer_norm(b.pointwise("Add", y, x), "output.LayerNorm")
    with b.scope("pooler"):
        return b.finish(x, b.pointwise("Tanh", b.gemm(b.first_token(x), width, name="dense")))


def gpt2(b: Builder, batch: int, dims: Mapping[str, int], *, layers: int, width: int, heads: int) -> Model:
    """Pre-norm decoder with tied head (GPT2LMHeadModel); ``seq`` tokens, at most 1024.

    Attention counts the full square.
    """
    seq = _length(b, dims, GPT2_POSITIONS)
    ids = b.input("input_ids", (batch, seq), "int64")
    mask = b.constant("causal_mask", (1, 1, seq, seq), "float32")
    x = b.embedding(ids, GPT2_VOCABULARY, width, name="wte")
    x = b.pointwise("Add", x, b.embedding(b.constant("position_ids", (1, seq)), GPT2_POSITIONS, width, name="wpe"))
    x = b.dropout(x)
    for layer in range(layers):
        with b.scope("h", layer):
            y = b.layer_norm(x, "ln_1")
            with b.scope("attn"):
                qkv = b.linear(y, 3 * width, name="c_attn")
                q, k, v = (b.part(qkv, i * width, (i + 1) * width, name=part) for i, part in enumerate("qkv"))
                y = b.dropout(b.linear(b.attention(q, k, v, heads, mask, dropout=True), width, name="c_proj"))
            x = b.pointwise("Add", x, y)
            with b.scope("mlp"):
                y = b.pointwise("Gelu", b.linear(b.layer_norm(x, "ln_2"), 4 * width, name="c_fc"), approximate="tanh")
                x = b.pointwise("Add", x, b.dropout(b.linear(y, width, name="c_proj")))
    x = b.reshape(b.layer_norm(x, "ln_f"), (batch * seq, width))
    logits = b.op("Gemm", [x, "wte.weight"], (batch * seq, GPT2_VOCABULARY), name="lm_head", transB=1)
    return b.finish(b.reshape(logits, (batch, seq, GPT2_VOCABULARY)))


def _bert_macs(layers: int, width: int, seq: int) -> int:
    """Projections and feed-forward 12 d^2 a token, two attention products, pooler once."""
    return layers * (12 * width * width * seq + 2 * seq * seq * width) + width * width


def _gpt2_macs(layers: int, width: int, seq: int) -> int:
    return layers * (12 * width * width * seq + 2 * seq * seq * width) + seq * width * GPT2_VOCABULARY


for _name, _layers, _width, _heads, _params in (
    ("bert-base", 12, 768, 12, 109_482_240),
    ("bert-large", 24, 1024, 16, 335_141_888),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_name.replace("bert", "BERT"),
            citation="Devlin et al. 2018, arXiv 1810.04805",
            published_params=_params,
            published_macs=_bert_macs(_layers, _width, 128),
            published_source=(
                "transformers BertModel (parameters); MACs by the closed form, for base equal to torch's counter"
            ),
            build=partial(bert, layers=_layers, width=_width, heads=_heads),
            dims={"seq": 128},
            domain="language",
        ),
    )
for _name, _layers, _width, _heads, _params in (
    ("gpt2", 12, 768, 12, 124_439_808),
    ("gpt2-medium", 24, 1024, 16, 354_823_168),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_name.replace("gpt", "GPT-").replace("-2", "-2", 1),
            citation="Radford et al. 2019, Language Models are Unsupervised Multitask Learners",
            published_params=_params,
            published_macs=_gpt2_macs(_layers, _width, 1024),
            published_source="parameters of transformers' GPT2LMHeadModel, head tied; MACs by the closed form",
            build=partial(gpt2, layers=_layers, width=_width, heads=_heads),
            dims={"seq": 1024},
            domain="language",
        ),
    )
