"""LSTM language models: PyTorch's word-level example (WikiText-2), Jozefowicz et al. 2016 (One Billion Words)."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIKITEXT2 = 33_278
LM1B_WORDS, LM1B_HIDDEN, LM1B_PROJECTED = 793_470, 2048, 512


def word_level(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """A table, two LSTMs, a dense layer over all words; nothing is tied."""
    ids = b.input("tokens", (dims["seq"], batch), "int64")
    x = b.dropout(b.embedding(ids, dims["vocabulary"], dims["width"], name="encoder"), 0.2)
    for layer in range(dims["layers"]):
        x = b.dropout(b.recurrent("LSTM", x, dims["width"], name=f"rnn.{layer}"), 0.2)
    return b.finish(b.linear(x, dims["vocabulary"], name="decoder"))


def billion_words(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """A sparse table, an unrolled LSTM of 2048 with states projected to 512, a softmax over ``sampled`` words."""
    seq, sampled = dims["seq"], dims["sampled"]
    ids = b.input("tokens", (batch, seq), "int64")
    words = b.input("next_tokens", (batch * seq,), "int64")
    x = b.dropout(b.embedding(ids, LM1B_WORDS, LM1B_PROJECTED, name="embedding", sparse=True))
    kernel = b.param("lstm.kernel", (2 * LM1B_PROJECTED, 4 * LM1B_HIDDEN))
    bias = b.param("lstm.bias", (4 * LM1B_HIDDEN,))
    projection = b.param("lstm.projection", (LM1B_HIDDEN, LM1B_PROJECTED))
    state = b.constant("first_state", (batch, LM1B_PROJECTED), "float32")
    cell = b.constant("first_cell", (batch, LM1B_HIDDEN), "float32")
    states = []
    for step in range(seq):
        with b.scope("lstm", f"step{step}"):
            at = b.reshape(b.part(x, step, step + 1, name="input", axis=1), (batch, LM1B_PROJECTED))
            gates = b.op("MatMul", [b.concat(at, state), kernel], (batch, 4 * LM1B_HIDDEN), name="gates")
            gates = b.add(gates, bias)
            parts = [b.part(gates, i * LM1B_HIDDEN, (i + 1) * LM1B_HIDDEN, name=n) for i, n in enumerate("ijfo")]
            enter, forget, leave = (b.pointwise("Sigmoid", parts[i]) for i in (0, 2, 3))
            entered = b.pointwise("Mul", enter, b.pointwise("Tanh", parts[1]))
            cell = b.add(b.pointwise("Mul", forget, cell), entered)
            state = b.pointwise("Mul", leave, b.pointwise("Tanh", cell))
            state = b.op("MatMul", [state, projection], (batch, LM1B_PROJECTED), name="projected")
        states.append(state)
    x = b.reshape(b.dropout(b.concat(*states)), (batch * seq, LM1B_PROJECTED))
    with b.scope("softmax"):
        table = b.param("weight", (LM1B_WORDS, LM1B_PROJECTED), sparse=True)
        biases = b.param("bias", (LM1B_WORDS, 1), sparse=True)
        draws = b.constant("draws", (sampled,))
        rows = b.op("Gather", [table, draws], (sampled, LM1B_PROJECTED), name="drawn_rows", axis=0)
        logits = b.op("MatMul", [x, b.transpose(rows, (1, 0))], (batch * seq, sampled), name="drawn_logits")
        shift = b.op("Gather", [biases, draws], (sampled, 1), name="drawn_biases", axis=0)
        logits = b.add(logits, b.reshape(shift, (sampled,)))
        true = b.op("Gather", [table, words], (batch * seq, LM1B_PROJECTED), name="true_rows", axis=0)
        own = b.op("Gather", [biases, words], (batch * seq, 1), name="true_biases", axis=0)
        true = b.pointwise("Mul", x, true)
        true = b.op("ReduceSum", [true, b.integers("axis", [1])], (batch * seq, 1), keepdims=1)
        return b.finish(b.pointwise("Softmax", b.concat(b.add(true, own), logits), axis=-1))


ZOO.add(
    "lstm-lm-wikitext2",
    ZooEntry(
        title="LSTM language model, WikiText-2",
        citation="pytorch/examples, word_language_model (Zaremba et al. 2014, arXiv 1409.2329)",
        published_params=2 * WIKITEXT2 * 200 + WIKITEXT2 + 2 * 4 * 200 * (200 + 200 + 2),
        published_source="closed form at the example's defaults",
        build=word_level,
        dims={"seq": 35, "width": 200, "layers": 2, "vocabulary": WIKITEXT2},
        domain="language",
    ),
)
ZOO.add(
    "lstm-lm-lm1b",
    ZooEntry(
        title="LSTM-2048-512 language model, One Billion Words",
        citation="Jozefowicz et al. 2016, arXiv 1602.02410",
        published_params=822_700_000,
        published_source="recalled from Parallax (arXiv 1808.02621): 9.4 million dense, 813.3 million sparse",
        build=billion_words,
        dims={"seq": 20, "sampled": 8192},
        domain="language",
        rounding=200_000,
    ),
)
