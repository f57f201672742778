"""Wu et al.: Google's Neural Machine Translation System (2016), in the layout of the MLPerf reference (GNMT v2)."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTH = 1024


def _attention(b: Builder, queries: str, keys: str) -> str:
    """Additive attention (Bahdanau): a hidden layer for every pair of positions, ``[T, B, H]`` both."""
    q = b.linear(b.transpose(queries, (1, 0, 2)), WIDTH, bias=False, name="linear_q")
    k = b.linear(b.transpose(keys, (1, 0, 2)), WIDTH, bias=False, name="linear_k")
    batch, asked, _ = b.shape(q)
    known = b.shape(k)[1]
    shape = (batch, asked, known, WIDTH)
    pairs = b.op("Add", [b.reshape(q, (batch, asked, 1, WIDTH)), b.reshape(k, (batch, 1, known, WIDTH))], shape)
    pairs = b.pointwise("Tanh", b.pointwise("Add", pairs, b.param("normalize_bias", (WIDTH,))))
    vector = b.pointwise("Mul", b.param("linear_att", (WIDTH, 1)), b.param("normalize_scalar", (1,)))
    scores = b.op("MatMul", [pairs, vector], (batch, asked, known, 1), name="scores")
    scores = b.pointwise("Softmax", b.reshape(scores, (batch, asked, known)), axis=-1)
    context = b.op("MatMul", [scores, b.transpose(keys, (1, 0, 2))], (batch, asked, WIDTH), name="context")
    return b.transpose(context, (1, 0, 2))


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Encoder with a bidirectional first layer, decoder that reads the attention of its first layer everywhere."""
    rows, layers = dims["vocabulary"], dims["layers"]
    source, target = (b.input(name, (dims[name], batch), "int64") for name in ("source", "target"))
    x = b.embedding(source, rows, WIDTH, name="embedder")
    with b.scope("encoder"):
        x = b.recurrent("LSTM", b.dropout(x, 0.2), WIDTH, name="0", both=True)
        x = b.recurrent("LSTM", b.dropout(x, 0.2), WIDTH, name="1")
        for layer in range(2, layers):
            x = b.add(b.recurrent("LSTM", b.dropout(x, 0.2), WIDTH, name=str(layer)), x)
    keys = x
    x = b.op("Gather", ["embedder.weight", target], (dims["target"], batch, WIDTH), name="target_rows", axis=0)
    with b.scope("decoder"):
        x = b.recurrent("LSTM", b.dropout(x, 0.2), WIDTH, name="0")
        with b.scope("attention"):
            context = _attention(b, x, keys)
        for layer in range(1, layers):
            y = b.recurrent("LSTM", b.concat(b.dropout(x, 0.2), context, axis=2), WIDTH, name=str(layer))
            x = b.add(y, x) if layer > 1 else y
        return b.finish(b.linear(x, rows, name="classifier"))


ZOO.add(
    "gnmt",
    ZooEntry(
        title="GNMT v2, 4 + 4 LSTMs of 1024",
        citation="Wu et al. 2016, arXiv 1609.08144; MLPerf Training reference (rnn_translator)",
        published_params=160_000_000,
        published_source="recalled: about 160 million",
        build=build,
        dims={"source": 50, "target": 50, "layers": 4, "vocabulary": 32_320},
        domain="language",
        rounding=2_000_000,
    ),
)
