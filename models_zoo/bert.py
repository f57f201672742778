"""Devlin et al.: BERT (2018), and Clark et al.: ELECTRA (2020); transformers' layouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

VOCABULARY, POSITIONS = 30522, 512
FLOAT = 1
"""TensorProto.DataType, for Cast."""


@dataclass(frozen=True)
class Shape:
    """Layers, width, heads; ``table`` is the width of the embeddings where it differs."""

    layers: int
    width: int
    heads: int
    table: int = 0

    def macs(self, seq: int) -> int:
        """Projections and feed-forward 12 d^2 a token, two attention products."""
        return self.layers * (12 * self.width**2 * seq + 2 * seq * seq * self.width)


BASE, LARGE = Shape(12, 768, 12), Shape(24, 1024, 16)
GENERATOR = Shape(12, 256, 4, table=768)


def checked_length(b: Builder, dims: Mapping[str, int], positions: int, size: str = "seq") -> int:
    """The number of tokens; refused where the position table has fewer rows."""
    if dims[size] > positions:
        raise b.refuse(size, dims[size], f"at most {positions} tokens, the rows of its position table")
    return dims[size]


def _inputs(b: Builder, batch: int, seq: int) -> tuple[str, str, str]:
    """Token ids, the mask as what is added to scores, token types."""
    ids, mask, types = (
        b.input(name, (batch, seq), b.id_dtype) for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    return ids, b.op("Cast", [b.reshape(mask, (batch, 1, 1, seq))], (batch, 1, 1, seq), name="mask", to=FLOAT), types


def _encoder(b: Builder, words: str, types: str, bias: str, shape: Shape) -> str:
    """Post-norm encoder over word vectors ``[B, S, table]``."""
    table, width = shape.table or shape.width, shape.width
    with b.scope("embeddings"):
        x = b.add(words, b.embedding(types, 2, table, name="token_type_embeddings"))
        positions = b.constant("position_ids", (1, b.shape(words)[1]))
        x = b.add(x, b.embedding(positions, POSITIONS, table, name="position_embeddings"))
        x = b.dropout(b.layer_norm(x, "LayerNorm"))
    if table != width:
        x = b.linear(x, width, name="embeddings_project")
    for layer in range(shape.layers):
        with b.scope("encoder", "layer", layer):
            with b.scope("attention", "self"):
                q, k, v = (b.linear(x, width, name=part) for part in ("query", "key", "value"))
                y = b.attention(q, k, v, shape.heads, bias, dropout=True)
            with b.scope("attention", "output"):
                y = b.dropout(b.linear(y, width, name="dense"))
                x = b.layer_norm(b.add(y, x), "LayerNorm")
            y = b.pointwise("Gelu", b.linear(x, 4 * width, name="intermediate.dense"))
            y = b.dropout(b.linear(y, width, name="output.dense"))
            x = b.layer_norm(b.add(y, x), "output.LayerNorm")
    return x


def _masked(b: Builder, x: str, predictions: int) -> str:
    """``[B, S, width] -> [B, predictions, width]``, the positions whose words are asked for; all of them for 0.

    Google's, NVIDIA's and their successors' training scripts gather them (``max_predictions_per_seq``),
    transformers scores every position.
    """
    batch, seq, width = b.shape(x)
    if not predictions:
        return x
    if predictions > seq:
        raise b.refuse("predictions", predictions, f"at most the {seq} tokens of a sequence")
    positions = b.input("masked_positions", (batch, predictions, 1), "int64")
    return b.op("GatherND", [x, positions], (batch, predictions, width), name="masked", batch_dims=1)


def _word_head(b: Builder, x: str, table: str, predictions: int) -> str:
    """Words from a dense layer, normalisation and the table with a bias of its own."""
    x = _masked(b, x, predictions)
    with b.scope("predictions"):
        y = b.layer_norm(b.pointwise("Gelu", b.linear(x, b.shape(table)[1], name="dense")), "LayerNorm")
        return b.add(b.tied_head(y, table), b.param("bias", (b.shape(table)[0],)))


def bert(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape, pretraining: bool) -> Model:
    """Encoder with pooler (BertModel); for ``pretraining`` both heads, words of ``predictions`` positions."""
    ids, bias, types = _inputs(b, batch, checked_length(b, dims, POSITIONS))
    words = b.embedding(ids, VOCABULARY, shape.width, name="embeddings.word_embeddings")
    x = _encoder(b, words, types, bias, shape)
    with b.scope("pooler"):
        pooled = b.pointwise("Tanh", b.gemm(b.first_token(x), shape.width, name="dense"))
    if not pretraining:
        return b.finish(x, pooled)
    heads = _word_head(b, x, "embeddings.word_embeddings.weight", dims["predictions"])
    return b.finish(heads, b.gemm(pooled, 2, name="seq_relationship"))


def question_answering(
    b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape, sparse: bool = False
) -> Model:
    """Encoder and a layer that scores every position as start and as end of the answer.

    ``sparse``: the word table has gradients by rows.
    """
    ids, bias, types = _inputs(b, batch, checked_length(b, dims, POSITIONS))
    words = b.embedding(ids, VOCABULARY, shape.width, name="embeddings.word_embeddings", sparse=sparse)
    return b.finish(b.linear(_encoder(b, words, types, bias, shape), 2, name="qa_outputs"))


def electra(b: Builder, batch: int, dims: Mapping[str, int], *, pretraining: bool) -> Model:
    """The discriminator; for ``pretraining`` behind a generator a third as wide that shares its word table."""
    ids, bias, types = _inputs(b, batch, checked_length(b, dims, POSITIONS))
    table = b.param("word_embeddings.weight", (VOCABULARY, BASE.width))
    shape = (*b.shape(ids), BASE.width)
    outputs = []
    if pretraining:
        with b.scope("generator"):
            x = _encoder(b, b.op("Gather", [table, ids], shape, name="words", axis=0), types, bias, GENERATOR)
            outputs.append(_word_head(b, x, table, dims["predictions"]))
        ids = b.pointwise("Cast", b.input("replaced_ids", b.shape(ids), "int64"), to=7)
    with b.scope("discriminator"):
        x = _encoder(b, b.op("Gather", [table, ids], shape, name="words", axis=0), types, bias, BASE)
        if pretraining:
            with b.scope("predictions"):
                y = b.pointwise("Gelu", b.linear(x, BASE.width, name="dense"))
                x = b.linear(y, 1, name="dense_prediction")
    return b.finish(*outputs, x)


DEVLIN = "Devlin et al. 2018, arXiv 1810.04805"
for _name, _title, _shape, _params, _pretraining_params in (
    ("bert-base", "BERT-base", BASE, 109_482_240, 110_106_428),
    ("bert-large", "BERT-large", LARGE, 335_141_888, 336_226_108),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=DEVLIN,
            published_params=_params,
            published_macs=_shape.macs(128) + _shape.width**2,
            published_source=(
                "transformers BertModel (parameters); MACs by the closed form, for base equal to torch's counter"
            ),
            build=partial(bert, shape=_shape, pretraining=False),
            dims={"seq": 128},
            domain="language",
        ),
    )
    ZOO.add(
        f"{_name}-pretraining",
        ZooEntry(
            title=f"{_title} with both heads",
            citation=DEVLIN,
            published_params=_pretraining_params,
            published_source="transformers BertForPreTraining, word head tied",
            build=partial(bert, shape=_shape, pretraining=True),
            dims={"seq": 128, "predictions": 0},
            domain="language",
        ),
    )
for _name, _title, _pretraining, _params in (
    ("electra-base", "ELECTRA-base", False, 108_891_648),
    ("electra-base-pretraining", "ELECTRA-base and its generator", True, 109_483_009 + 33_740_602 - VOCABULARY * 768),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation="Clark et al. 2020, arXiv 2003.10555",
            published_params=_params,
            published_source="transformers ElectraModel; ElectraForPreTraining and ElectraForMaskedLM with one table",
            build=partial(electra, pretraining=_pretraining),
            dims={"seq": 128, "predictions": 0} if _pretraining else {"seq": 128},
            domain="language",
        ),
    )
