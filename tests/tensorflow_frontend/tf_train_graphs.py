"""TensorFlow 1 training programs as graph files. Every builder is called inside a graph of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def features(*shape: int) -> Any:
    return v1.placeholder(tf.float32, (None, *shape), name="x")


def cross_entropy(logits: Any) -> Any:
    labels = v1.placeholder(tf.int64, (None,), name="labels")
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(each, name="loss")


def weight(name: str, *shape: int, trainable: bool = True) -> Any:
    return v1.get_variable(name, shape, trainable=trainable)


def mlp() -> None:
    """``[?, 4] @ [4, 5] @ [5, 3] @ [3, 3]``, the last one not trained; accuracy and a summary beside the loss."""
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(features(4), weight("w", 4, 5)), weight("b", 5)))
    logits = tf.matmul(tf.matmul(hidden, weight("v", 5, 3)), weight("fixed", 3, 3, trainable=False))
    loss = cross_entropy(logits)
    v1.summary.scalar("loss_summary", loss)
    tf.reduce_mean(tf.cast(tf.argmax(logits, 1), tf.float32), name="accuracy")
    v1.train.AdamOptimizer().minimize(loss, global_step=v1.train.get_or_create_global_step())
    v1.global_variables_initializer()
    v1.train.Saver()


def cnn() -> None:
    """8 x 8 x 3: 3 x 3 to 4 channels, batch norm, pool to 4 x 4, depthwise, 3 x 3 / 2 to 6, dense 24 to 10."""
    x = tf.nn.conv2d(features(8, 8, 3), weight("k", 3, 3, 3, 4), 1, "SAME")
    x, mean, _ = v1.nn.fused_batch_norm(x, weight("scale", 4), weight("offset", 4), is_training=True)
    moving = weight("moving_mean", 4, trainable=False)
    x = tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "VALID")
    x = tf.nn.depthwise_conv2d(x, weight("depth", 3, 3, 4, 1), (1, 1, 1, 1), "SAME")
    x = tf.nn.relu(tf.nn.conv2d(x, weight("k2", 3, 3, 4, 6), 2, "SAME"))
    dense = weight("w", 24, 10)
    loss = cross_entropy(tf.matmul(tf.reshape(x, (-1, 24)), dense)) + 0.01 * tf.nn.l2_loss(dense)
    with tf.control_dependencies([v1.assign_sub(moving, (moving - mean) * 0.1)]):
        v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def recommender(optimizer: Callable[[], Any], *, clip: bool = False) -> Callable[[], None]:
    """Six rows of a ``[50, 8]`` table, their mean, ``[8, 1]``."""

    def build() -> None:
        ids = v1.placeholder(tf.int32, (None, 6), name="ids")
        table = weight("table", 50, 8)
        logits = tf.matmul(tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1), weight("w", 8, 1))
        clicked = v1.placeholder(tf.float32, (None, 1), name="clicked")
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits), name="loss")
        made = optimizer()
        pairs = made.compute_gradients(loss)
        gradients = [gradient for gradient, _ in pairs]
        if clip:
            gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        made.apply_gradients(zip(gradients, [variable for _, variable in pairs], strict=True))

    return build


def minimized(value: Any, optimizer: Any) -> None:
    optimizer.minimize(tf.reduce_mean(tf.square(value), name="loss"))


def attention() -> None:
    """Six rows of 8, one head, ten classes by a transposed table."""
    x = features(6, 8)
    q, k, v = (tf.einsum("btc,cd->btd", x, weight(name, 8, 8)) for name in ("q", "k", "v"))
    mixed = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
    classes = tf.matmul(tf.reshape(mixed, (-1, 8)), weight("o", 10, 8), transpose_b=True)
    minimized(classes, v1.train.AdamOptimizer())


def convolutions() -> None:
    """8 x 8 x 4 in two groups to 6, transposed to 16 x 16 x 5, then 4 x 4 x 16 x 5 in three dimensions to 3."""
    x = features(8, 8, 4)
    x = tf.nn.conv2d(x, weight("groups", 3, 3, 2, 6), 1, "SAME")
    x = tf.nn.conv2d_transpose(x, weight("up", 3, 3, 5, 6), (tf.shape(x)[0], 16, 16, 5), 2)
    x = tf.nn.conv3d(tf.reshape(x, (-1, 4, 4, 16, 5)), weight("deep", 2, 2, 2, 5, 3), (1, 1, 1, 1, 1), "SAME")
    minimized(tf.tanh(tf.nn.avg_pool3d(x, 2, 2, "SAME")), v1.train.MomentumOptimizer(0.1, 0.9))


def lstm_clipped() -> None:
    """Five steps of 4 features and a state of 8, unrolled; gradients are clipped by their norm."""
    x, kernel, bias = features(5, 4), weight("kernel", 12, 32), weight("bias", 32)
    h = c = tf.zeros((tf.shape(x)[0], 8))
    for step in range(5):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x[:, step], h], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    variables = v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(tf.reduce_mean(tf.square(h), name="loss"), variables), 1.0)
    v1.train.AdamOptimizer().apply_gradients(zip(gradients, variables, strict=True))


def partitioned_and_synchronous() -> None:
    """One row of a ``[60, 8]`` table in three parts, ``[8, 1]``; gradients wait on parameter servers."""
    with v1.device(v1.train.replica_device_setter(ps_tasks=3, worker_device="/job:worker/task:1")):
        ids = v1.placeholder(tf.int64, (None,), name="ids")
        table = v1.get_variable("table", (60, 8), partitioner=v1.fixed_size_partitioner(3))
        rows = v1.nn.embedding_lookup(table, ids, partition_strategy="div")
        loss = tf.reduce_mean(tf.square(tf.matmul(rows, weight("w", 8, 1))), name="loss")
        optimizer = v1.train.SyncReplicasOptimizer(v1.train.AdagradOptimizer(0.1), 2)
        optimizer.minimize(loss, global_step=v1.train.get_or_create_global_step())


def branches() -> None:
    """One product or, dearer, two."""
    x, w = features(4), weight("w", 4, 4)
    chosen = tf.cond(
        v1.placeholder(tf.bool, (), name="once"), lambda: tf.matmul(x, w), lambda: tf.matmul(tf.matmul(x, w), w)
    )
    minimized(chosen, v1.train.AdamOptimizer())


def towers() -> None:
    """A batch of 2 over two GPUs, one variable ``[4, 5]``, gradients averaged."""
    optimizer, found = v1.train.AdamOptimizer(), []
    for index, part in enumerate(tf.split(v1.placeholder(tf.float32, (2, 4), name="x"), 2)):
        with (
            v1.device(f"/gpu:{index}"),
            v1.name_scope(f"tower_{index}"),
            v1.variable_scope("net", reuse=v1.AUTO_REUSE),
        ):
            loss = tf.reduce_mean(tf.square(tf.matmul(part, weight("w", 4, 5))), name="loss")
            found.append(optimizer.compute_gradients(loss))
    gradients = tf.reduce_mean(tf.stack([pairs[0][0] for pairs in found]), 0)
    optimizer.apply_gradients([(gradients, found[0][0][1])])


def on_parameter_servers() -> None:
    with v1.device(v1.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
        mlp()


def gradients_fetched() -> None:
    hidden = tf.tanh(tf.matmul(features(4), weight("w", 4, 5)))
    loss = tf.reduce_sum(tf.square(tf.matmul(hidden, weight("v", 5, 3))), name="loss")
    tf.gradients(loss, v1.trainable_variables())


def gradient_penalty() -> None:
    """A critic ``[?, 4] @ [4, 5] @ [5, 1]`` whose loss holds the norm of its gradient."""
    x = features(4)
    critic = tf.matmul(tf.tanh(tf.matmul(x, weight("w", 4, 5))), weight("v", 5, 1))
    slope = tf.norm(tf.gradients(critic, x)[0], axis=1)
    v1.train.AdamOptimizer().minimize(tf.reduce_mean(critic) + tf.reduce_mean(tf.square(slope - 1.0)))


def adversaries() -> None:
    """Two losses with an optimizer each: ``[?, 4] @ [4, 4]``, and that ``@ [4, 1]``."""
    made = tf.matmul(features(4), weight("generator", 4, 4))
    judged = tf.matmul(tf.tanh(made), weight("judge", 4, 1))
    for name, variable in (("generator", "generator"), ("judge", "judge")):
        loss = tf.reduce_mean(tf.square(judged if name == "judge" else judged - 1.0), name=f"{name}_loss")
        trained = [v for v in v1.trainable_variables() if v.op.name == variable]
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=trained)


def recurrent(*, old_control_flow: bool) -> Callable[[], None]:
    """Five trips of ``[?, 4] @ [4, 4]``."""

    def build() -> None:
        square = weight("w", 4, 4)
        (v1.disable_control_flow_v2 if old_control_flow else v1.enable_control_flow_v2)()
        try:
            end = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.matmul(y, square)), [0, features(4)])[1]
            v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(end), name="loss"))
        finally:
            v1.enable_control_flow_v2()

    return build


def pipeline() -> None:
    """Batches of 7 from a dataset."""
    rows = tf.data.Dataset.from_tensors((tf.zeros(4), tf.zeros((), tf.int64))).repeat().batch(7, drop_remainder=True)
    x, labels = v1.data.make_one_shot_iterator(rows).get_next()
    logits = tf.matmul(x, weight("w", 4, 3))
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(each, name="loss"))


def graph_of(build: Callable[[], None], *, resources: bool = True) -> Any:
    """The graph of a program; ``resources``: variables behind handles, as since TensorFlow 1.15."""
    (v1.enable_resource_variables if resources else v1.disable_resource_variables)()
    graph = tf.Graph()
    try:
        with graph.as_default():
            build()
    finally:
        v1.enable_resource_variables()
    return graph


def graph_file(path: Path, build: Callable[[], None], *, resources: bool = True) -> Path:
    """As ``tf.io.write_graph`` writes it."""
    path.write_bytes(graph_of(build, resources=resources).as_graph_def().SerializeToString())
    return path
