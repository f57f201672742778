"""Layers and operators, by hand-worked multiply-accumulates for a batch of 2."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from tf_models import RAMP, load, total, traced  # noqa: E402

from graphcost.errors import UsageError  # noqa: E402
from graphcost.ir import ParamKind  # noqa: E402

L = keras.layers


def sequential(shape, *layers):
    return keras.Sequential([keras.Input(shape), *layers])


def attention():
    x = keras.Input((6, 16))
    return keras.Model(x, L.MultiHeadAttention(2, 8)(x, x))


# id: (model, MACs, parameters, buffers)
LAYERS = {
    "dense": (lambda: sequential((8,), L.Dense(3)), 2 * 8 * 3, 27, 0),
    "time-distributed": (lambda: sequential((4, 8), L.TimeDistributed(L.Dense(3))), 2 * 4 * 8 * 3, 27, 0),
    "conv1d-causal": (lambda: sequential((10, 2), L.Conv1D(4, 3, padding="causal")), 2 * 10 * 4 * 3 * 2, 28, 0),
    "conv2d-groups": (lambda: sequential((5, 5, 4), L.Conv2D(8, 3, groups=2)), 2 * 3 * 3 * 8 * 9 * 2, 152, 0),
    "conv3d": (lambda: sequential((5, 5, 5, 2), L.Conv3D(4, 3)), 2 * 27 * 4 * 27 * 2, 220, 0),
    # transposed: on the input grid
    "conv2d-transpose": (lambda: sequential((5, 5, 2), L.Conv2DTranspose(4, 3, 2)), 2 * 25 * 2 * 4 * 9, 76, 0),
    "conv3d-transpose": (lambda: sequential((5, 5, 5, 2), L.Conv3DTranspose(4, 3)), 2 * 125 * 2 * 4 * 27, 220, 0),
    "depthwise": (lambda: sequential((5, 5, 4), L.DepthwiseConv2D(3, depth_multiplier=2)), 2 * 9 * 8 * 9, 80, 0),
    "batch-norm": (lambda: sequential((5, 5, 4), L.BatchNormalization()), 0, 8, 8),
    "layer-norm": (lambda: sequential((5, 4), L.LayerNormalization()), 0, 8, 0),
    "pools": (lambda: sequential((8, 8, 4), L.MaxPooling2D(2), L.AveragePooling2D(2)), 0, 0, 0),
    "resize-pad": (lambda: sequential((8, 8, 4), L.UpSampling2D(2), L.ZeroPadding2D(1), L.Cropping2D(1)), 0, 0, 0),
    "dropout": (lambda: sequential((8,), L.Dropout(0.5), L.Dense(3, activation="softmax")), 2 * 24, 27, 0),
    "embedding": (lambda: sequential((6,), L.Embedding(100, 8), L.Flatten(), L.Dense(3)), 2 * 48 * 3, 947, 0),
    # four projections of 6 rows 16 -> 16, then scores and values of two heads of 8
    "attention": (attention, 2 * (4 * 6 * 16 * 16 + 2 * 2 * 6 * 6 * 8), 4 * 16 * 16 + 4 * 16, 0),
    "lstm-stacked": (
        lambda: sequential((5, 4), L.LSTM(16, return_sequences=True), L.LSTM(8)),
        2 * 5 * (4 * 16 * (4 + 16) + 4 * 8 * (16 + 8)), 4 * 16 * 21 + 4 * 8 * 25, 0,
    ),
    "gru": (lambda: sequential((5, 4), L.GRU(16)), 2 * 5 * 3 * 16 * 20, 3 * 16 * 20 + 2 * 3 * 16, 0),
    "bidirectional": (
        lambda: sequential((5, 4), L.Bidirectional(L.LSTM(16))), 2 * 2 * 5 * 4 * 16 * 20, 2 * 4 * 16 * 21, 0,
    ),
    "simple-rnn": (lambda: sequential((5, 4), L.SimpleRNN(16)), 2 * 5 * 16 * 20, 336, 0),
    "conv-lstm": (
        lambda: sequential((3, 8, 8, 2), L.ConvLSTM2D(4, 3, padding="same")),
        2 * 3 * 64 * 16 * 9 * (2 + 4), 9 * 16 * (2 + 4) + 16, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer_totals(name):
    build, macs, params, buffers = LAYERS[name]
    found = total(build())
    assert (found.macs, found.params, found.buffers) == (macs, params, buffers)
    assert found.coverage.unknown == ()


@pytest.mark.slow
def test_mobilenet_has_its_published_size():
    model = keras.applications.MobileNetV2(weights=None, input_shape=(224, 224, 3))
    found = total(model, 1)
    assert found.macs == 300_774_272  # also counted by other tools: 300.77 million
    assert found.params + found.buffers == 3_538_984  # Keras' own count
    assert found.coverage.unknown == ()


def test_frozen_layers_are_not_trained():
    model = sequential((8,), L.Dense(3), L.Dense(2))
    model.layers[0].trainable = False
    trained = {param.name: param.trainable for node in load(model).nodes for _, param in node.params}
    assert list(trained.values()) == [False, False, True, True]


def test_several_inputs_keep_their_names():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    model = load(keras.Model({"a": a, "b": b}, {"out": L.Dense(2)(L.Concatenate()([a, b]))}))
    assert {name: spec.shape for name, spec in model.inputs.items()} == {"a": (2, 3), "b": (2, 3)}


def test_shared_layer_counts_once_as_parameters_and_twice_as_work():
    a, b, shared = keras.Input((3,)), keras.Input((3,)), L.Dense(5)
    found = total(keras.Model([a, b], L.Add()([shared(a), shared(b)])))
    assert (found.macs, found.params) == (2 * 2 * 3 * 5, 20)


OPERATORS = {
    "matmul-transposed": (lambda x, w: tf.matmul(x, w, transpose_b=True), 2 * 16),
    "matmul-both": (lambda x, w: tf.matmul(x, x, transpose_a=True), 2 * 16),
    "batch-matmul": (lambda x, w: tf.matmul(x[:, None], x[:, :, None]), 2 * 4),
    "batch-matmul-adjoint": (lambda x, w: tf.matmul(x[:, None], x[:, None], transpose_b=True), 2 * 4),
    "einsum": (lambda x, w: tf.einsum("bi,ij->bj", x, w), 2 * 16),
    "function-twice": (lambda x, w: tf.function(tf.matmul)(tf.function(tf.matmul)(x, w), w), 2 * 2 * 16),
    "conv-nchw-explicit": (
        lambda x, w: tf.nn.conv2d(
            tf.reshape(x, (-1, 2, 2, 1)), tf.reshape(w, (2, 2, 1, 4)), 1, [[0, 0], [1, 1], [1, 1], [0, 0]]
        ),
        2 * 3 * 3 * 4 * 4,
    ),
}  # fmt: skip


def test_a_trained_variable_of_one_element_is_a_parameter():
    """Dense(1) on a batch: 3 x 1 weights and one bias; a factor of one element that nobody trains is none."""
    assert total(sequential((3,), L.Dense(1))).params == 4
    scale, shift = tf.Variable(2.0, trainable=False), tf.Variable([1.0])
    assert total(traced(lambda x: x * scale + shift)).params == 1


def test_deleted_variables_are_named():
    def build():
        weight = tf.Variable(RAMP)
        return traced(lambda x: tf.matmul(x, weight))

    with pytest.raises(UsageError, match="variables have been deleted"):
        load(build())


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_macs(name):
    call, macs = OPERATORS[name]
    weight = tf.Variable(RAMP)
    found = total(traced(lambda x: call(x, weight)))
    assert found.macs == macs
    assert found.coverage.unknown == ()


def test_statistics_of_fused_batch_norm_are_buffers():
    x = tf.TensorSpec((None, 2, 2, 4), name="x")
    scale, other = tf.Variable(tf.ones(4)), tf.Variable(tf.zeros(4))

    def norm(x):
        return tf.compat.v1.nn.fused_batch_norm(x, scale, scale, other, other, is_training=False)[0]

    model = load(traced(norm, x))
    (node,) = [node for node in model.nodes if node.op_type == "BatchNormalization"]
    assert node.inputs[0].shape == (2, 4, 2, 2)  # channels first
    assert [(i, param.kind) for i, param in node.params] == [
        (1, ParamKind.WEIGHT), (2, ParamKind.WEIGHT), (3, ParamKind.BUFFER), (4, ParamKind.BUFFER)
    ]  # fmt: skip


def test_gather_reads_the_table_where_it_lies():
    table = tf.Variable(tf.zeros((50, 8)))
    model = load(traced(lambda ids: tf.gather(table, ids), tf.TensorSpec((None, 3), tf.int32, name="ids")))
    (node,) = model.nodes
    assert (node.op_type, node.inputs[0].shape, node.outputs[0].shape) == ("Gather", (50, 8), (2, 3, 8))
    assert [param.numel for _, param in node.params] == [400]


def test_unmapped_operators_are_reported_by_name_and_number():
    unknown = total(traced(lambda x: tf.linalg.qr(tf.linalg.qr(x)[0])[0])).coverage.unknown
    assert [(entry.op_type, entry.count) for entry in unknown] == [("tf.Qr", 2)]


def test_constant_arithmetic_is_folded():
    model = load(traced(lambda x: tf.matmul(x, tf.transpose(tf.constant(RAMP)))))
    assert [node.op_type for node in model.nodes] == ["MatMul"]
    assert sum(param.numel for _, param in model.nodes[0].params) == 16
