"""The networks of ``agreement_models`` in Keras layers: the TensorFlow road to the same figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers as L  # noqa: N812 - short, as the networks are long
from keras import ops


def _conv(x: Any, width: int, kernel: int, stride: int = 1, **options: Any) -> Any:
    """A padded convolution and its batch norm, torch's sizes: ``kernel // 2`` zeros on every side."""
    x = L.ZeroPadding2D(kernel // 2)(x) if kernel > 1 else x
    return L.BatchNormalization()(L.Conv2D(width, kernel, stride, use_bias=False, **options)(x))


def resnet50() -> Any:
    """Stride in the 3x3 convolution; keras.applications has it in the first 1x1, and biases."""
    source = keras.Input((224, 224, 3), batch_size=1)
    x = L.ReLU()(_conv(source, 64, 7, 2))
    x = L.MaxPooling2D(3, 2)(L.ZeroPadding2D(1)(x))
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for index in range(count):
            stride = 2 if stage and not index else 1
            y = L.ReLU()(_conv(x, width, 1))
            y = L.ReLU()(_conv(y, width, 3, stride))
            shortcut = x if index else _conv(x, 4 * width, 1, stride)
            x = L.ReLU()(_conv(y, 4 * width, 1) + shortcut)
    return keras.Model(source, L.Dense(1000)(L.GlobalAveragePooling2D()(x)))


def _heads(x: Any, heads: int) -> Any:
    """``[B, S, heads * D] -> [B, heads, S, D]``."""
    return ops.transpose(ops.reshape(x, (x.shape[0], x.shape[1], heads, x.shape[2] // heads)), (0, 2, 1, 3))


def _attend(q: Any, k: Any, v: Any, heads: int, mask: Any = None) -> Any:
    """Scores, softmax, values, heads side by side: ``[B, S, heads * D]``."""
    batch, length, width = q.shape
    scores = ops.matmul(_heads(q, heads), ops.transpose(_heads(k, heads), (0, 1, 3, 2)))
    scores = scores * (width // heads) ** -0.5
    if mask is not None:
        scores = scores + mask
    values = ops.matmul(ops.softmax(scores), _heads(v, heads))
    return ops.reshape(ops.transpose(values, (0, 2, 1, 3)), (batch, length, width))


class Positions(L.Layer):
    """A table of positions, added row by row: ``[B, S, W] + [S, W]`` of ``[rows, W]``."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = self.add_weight(shape=(rows, width), name="table")

    def call(self, x: Any) -> Any:
        return x + ops.take(self.table, ops.arange(x.shape[1]), axis=0)


def bert_base() -> Any:
    """128 tokens, a mask, token types; twelve layers and the pooler."""
    ids, seen, kinds = (
        keras.Input((128,), batch_size=1, dtype="int32", name=name) for name in ("ids", "mask", "kinds")
    )
    mask = (1.0 - ops.cast(seen, "float32")[:, None, None, :]) * -1e9
    x = Positions(512, 768)(L.Embedding(30522, 768)(ids) + L.Embedding(2, 768)(kinds))
    x = L.LayerNormalization()(x)
    for _ in range(12):
        q, k, v = (L.Dense(768)(x) for _ in range(3))
        x = L.LayerNormalization()(x + L.Dense(768)(_attend(q, k, v, 12, mask)))
        x = L.LayerNormalization()(x + L.Dense(768)(ops.gelu(L.Dense(3072)(x), approximate=False)))
    return keras.Model([ids, seen, kinds], [x, L.Dense(768, activation="tanh")(x[:, 0])])


def gpt2() -> Any:
    """Two layers at 64 tokens; the head is the table of tokens."""
    ids = keras.Input((64,), batch_size=1, dtype="int32")
    tokens = L.Embedding(50257, 768)
    mask = (1.0 - ops.tril(ops.ones((64, 64)))) * -1e9
    x = Positions(1024, 768)(tokens(ids))
    for _ in range(2):
        q, k, v = ops.split(L.Dense(3 * 768)(L.LayerNormalization()(x)), 3, axis=-1)
        x = x + L.Dense(768)(_attend(q, k, v, 12, mask))
        x = x + L.Dense(768)(ops.gelu(L.Dense(3072)(L.LayerNormalization()(x))))
    return keras.Model(ids, Tied(tokens)(L.LayerNormalization()(x)))


class Tied(L.Layer):
    """A head that shares an embedding's table ``[V, W]``."""

    def __init__(self, table: Any) -> None:
        super().__init__()
        self.source = table

    def call(self, x: Any) -> Any:
        return ops.matmul(x, ops.transpose(self.source.embeddings))


def lstm_tagger() -> Any:
    """30 tokens to 20 tags through two bidirectional layers."""
    ids = keras.Input((30,), batch_size=1, dtype="int32")
    x = L.Embedding(1000, 64)(ids)
    for _ in range(2):
        x = L.Bidirectional(L.LSTM(128, return_sequences=True))(x)
    return keras.Model(ids, L.Dense(20)(x))


def encoder_decoder(width: int = 64, heads: int = 4) -> Any:
    """24 source and 10 target tokens, one attention in the encoder, one across."""
    source, target = (keras.Input((length,), batch_size=1, dtype="int32") for length in (24, 10))

    def attend(queries: Any, keys: Any) -> Any:
        return L.Dense(width)(_attend(L.Dense(width)(queries), L.Dense(width)(keys), L.Dense(width)(keys), heads))

    memory = L.Embedding(100, width)(source)
    memory = L.LayerNormalization()(memory + attend(memory, memory))
    x = L.Embedding(100, width)(target)
    return keras.Model([source, target], L.Dense(100)(L.LayerNormalization()(x + attend(x, memory))))


def dlrm(tables: int = 6, rows: int = 5000, width: int = 16) -> Any:
    """A batch of eight."""
    dense = keras.Input((13,), batch_size=8)
    sparse = keras.Input((tables,), batch_size=8, dtype="int32")
    x = L.Dense(width, activation="relu")(L.Dense(64, activation="relu")(dense))
    vectors = ops.stack([x, *(L.Embedding(rows, width)(sparse[:, i]) for i in range(tables))], axis=1)
    pairs = ops.reshape(ops.matmul(vectors, ops.transpose(vectors, (0, 2, 1))), (8, (tables + 1) ** 2))
    top = L.Dense(64, activation="relu")(ops.concatenate([x, pairs], axis=1))
    return keras.Model([dense, sparse], L.Dense(1, activation="sigmoid")(top))


def gated_cnn() -> Any:
    """A tf.function with ``tf.cond``, over variables that its closure keeps."""
    shapes = {"stem": (3, 3, 3, 8), "wide": (3, 3, 8, 32), "narrow": (1, 1, 8, 32)}
    kernels = {name: tf.Variable(tf.zeros(shape), name=name) for name, shape in shapes.items()}
    biases = {name: tf.Variable(tf.zeros(shape[-1:]), name=f"{name}_bias") for name, shape in shapes.items()}

    def conv(x: Any, name: str) -> Any:
        return tf.nn.bias_add(tf.nn.conv2d(x, kernels[name], 1, "SAME"), biases[name])

    @tf.function(input_signature=[tf.TensorSpec((1, 32, 32, 3), tf.float32)])
    def gated(x: Any) -> Any:
        x = tf.nn.relu(conv(x, "stem"))
        return tf.cond(tf.reduce_mean(x) > 0, lambda: conv(x, "wide"), lambda: conv(x, "narrow"))

    return gated


KERAS: dict[str, Callable[[], Any]] = {
    "resnet50": resnet50,
    "bert-base": bert_base,
    "gpt2 (2 layers)": gpt2,
    "lstm tagger": lstm_tagger,
    "encoder-decoder": encoder_decoder,
    "dlrm": dlrm,
    "gated cnn": gated_cnn,
}
"""``agreement`` takes MobileNetV2 and VGG-16 from keras.applications, which builds them alike."""
