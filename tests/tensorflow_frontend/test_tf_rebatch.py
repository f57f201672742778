"""Graphs whose placeholders fix the batch, run at another one with ``--batch``."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import tf_train_graphs as programs  # noqa: E402
from tf_models import RAMP, load, total, traced  # noqa: E402

from graphcost.errors import UsageError  # noqa: E402
from graphcost.frontends.options import LoadOptions  # noqa: E402
from graphcost.graph import branch_weight, build_graph, totals  # noqa: E402
from graphcost.ir import BatchSource  # noqa: E402
from graphcost.sources import load_model  # noqa: E402

L = keras.layers
ROW = 4 * 4


def fixed(function, *shape):
    return traced(function, tf.TensorSpec(shape, name="x"))


def product(x):
    return tf.matmul(x, tf.constant(RAMP))


def heads(x):
    """``[B, 6, 4]`` merged to rows, multiplied, split into two heads of 2, scores of every head."""
    batch = x.shape[0]
    rows = tf.reshape(product(tf.reshape(x, (batch * 6, 4))), (batch, 6, 2, 2))
    return tf.matmul(tf.transpose(rows, (0, 2, 1, 3)), tf.transpose(rows, (0, 2, 3, 1)))


def time_first(x):
    """``[6, B, 4]`` merged to rows and split again; the first step goes on."""
    x = tf.transpose(x, (1, 0, 2))
    time, batch, _ = x.shape
    return product(tf.reshape(product(tf.reshape(x, (time * batch, 4))), (time, batch, 4))[0])


def packed(x):
    return product(tf.reshape(x, tf.stack([x.shape[0], tf.size(x) // x.shape[0]])))


def masked(x):
    return product(x * tf.cast(tf.random.uniform((x.shape[0], 4)) > 0.5, tf.float32))


def state(x):
    return tf.matmul(tf.concat([x, tf.fill((x.shape[0], 4), 1.0)], 1), tf.tile(tf.constant(RAMP), (2, 1)))


def tiled(x):
    """A learned row before every sample."""
    first = tf.tile(tf.constant(RAMP[:1]), (x.shape[0], 1))
    return product(x + first)


# name: (function of x, shape of x, MACs of a sample)
FOLLOW = {
    "plain": (product, (3, 4), ROW),
    "one": (product, (1, 4), ROW),
    "flatten": (lambda x: product(tf.reshape(x, (x.shape[0], 4))), (3, 2, 2), ROW),
    "flatten-one": (lambda x: product(tf.reshape(x, (1, 4))), (1, 2, 2), ROW),
    "rest-open": (lambda x: product(tf.reshape(x, (x.shape[0], -1))), (3, 2, 2), ROW),
    "heads": (heads, (3, 6, 4), 6 * ROW + 2 * 6 * 6 * 2),
    "heads-one": (heads, (1, 6, 4), 6 * ROW + 2 * 6 * 6 * 2),
    "time-first": (time_first, (3, 6, 4), 6 * ROW + ROW),
    "packed": (packed, (3, 2, 2), ROW),
    "random-mask": (masked, (3, 4), ROW),
    "state": (state, (3, 4), 2 * ROW),
    "computed": (lambda x: product(tf.repeat(x, 2, 1)[:, :4]), (3, 4), ROW),
    "tiled": (tiled, (3, 4), ROW),
}


@pytest.mark.parametrize("name", FOLLOW)
def test_sizes_in_constants_follow(name):
    function, shape, macs = FOLLOW[name]
    concrete = fixed(function, *shape)
    own = load(concrete, None)
    assert (own.batch, own.batch_source) == (shape[0], BatchSource.FILE)
    model = load(concrete, 5)
    assert totals(build_graph(own)).macs == shape[0] * macs
    assert totals(build_graph(model)).macs == 5 * macs
    assert (model.batch, model.batch_source, model.inputs["x"].shape) == (5, BatchSource.OPTION, (5, *shape[1:]))


# name: (function of x, shape of x, the operator that cannot follow)
REFUSED = {
    "constant-rows": (lambda x: product(x + tf.constant(RAMP[:3])), (3, 4), r"\(AddV2\)"),
    "first-sample": (lambda x: product(x[:1]), (3, 4), r"MatMul \(MatMul\) does not scale"),
    "literal-rows": (lambda x: product(x[0:3]), (3, 4), r"MatMul \(MatMul\) does not scale"),
    "batch-among-features": (lambda x: tf.matmul(tf.reshape(x, (1, 12)), tf.ones((12, 2))), (3, 4), "Reshape|MatMul"),
    "scores-across-samples": (lambda x: tf.matmul(x, x, transpose_b=True), (3, 4), r"MatMul \(Gemm\) does not scale"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_follow_is_named(name):
    function, shape, culprit = REFUSED[name]
    concrete = fixed(function, *shape)
    assert load(concrete, shape[0]).batch == shape[0]
    with pytest.raises(UsageError, match=f"fixed at batch 3 and cannot be run at 5: .*({culprit})"):
        load(concrete, 5)


def test_what_was_loaded_before_is_compared_with():
    concrete = fixed(heads, 1, 6, 4)
    base = load(concrete, None)
    assert load_model(concrete, LoadOptions(batch=5), base=base).nodes == load(concrete, 5).nodes


# name: (shape of a sample, layers, MACs of a sample)
KERAS = {
    "convolution": ((6, 6, 1), lambda: [L.Conv2D(3, 3), L.Flatten(), L.Dense(2)], 16 * 3 * 9 + 48 * 2),
    "upsampling": ((4, 4, 2), lambda: [L.UpSampling2D(2), L.Conv2DTranspose(3, 2, 2)], 64 * 2 * 3 * 4),
    "lstm": ((7, 4), lambda: [L.LSTM(8, return_sequences=True), L.GRU(6)],
             7 * 4 * 8 * (4 + 8) + 7 * 3 * 6 * (8 + 6)),
    "time-distributed": ((5, 8), lambda: [L.TimeDistributed(L.Dense(3))], 5 * 8 * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", KERAS)
def test_keras_models_of_a_fixed_batch(name):
    shape, layers, macs = KERAS[name]
    model = keras.Sequential([keras.Input(batch_shape=(4, *shape)), *layers()])
    assert total(model, None).macs == 4 * macs
    assert total(model, 10).macs == 10 * macs
    assert total(model, 10).params == total(model, None).params


def test_keras_recurrence_built_for_one_sample_is_refused_by_name():
    """Keras leaves the batch out of a bias there (Squeeze), which no other batch can follow."""
    model = keras.Sequential([keras.Input(batch_shape=(1, 7, 4)), L.LSTM(8)])
    with pytest.raises(UsageError, match=r"fixed at batch 1 and cannot be run at 5: .*\(BiasAdd\)"):
        load(model, 5)


def test_training_graph_of_a_fixed_batch(tmp_path):
    """Labels, dropout masks and the losses' own sizes follow with the features."""

    def build():
        x = tf.compat.v1.placeholder(tf.float32, (16, 2, 2), name="x")
        labels = tf.compat.v1.placeholder(tf.int64, (16,), name="labels")
        hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(tf.reshape(x, (16, 4)), programs.weight("w", 4, 5))), rate=0.5)
        logits = tf.matmul(hidden, programs.weight("v", 5, 3))
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        tf.compat.v1.train.AdamOptimizer().minimize(tf.reduce_mean(each, name="loss"))

    path = programs.graph_file(tmp_path / "g.pb", build)
    for batch in (None, 1, 48):
        assert total(path, batch).macs == (batch or 16) * (20 + 15)
    assert load(path, 48).inputs["labels"].shape == (48,)
    assert branch_weight(load(path, 48).nodes)[0] == 2 * 48 * 35
