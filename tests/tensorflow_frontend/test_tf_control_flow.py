"""Loops and conditions of TensorFlow 1 and 2, for a batch of 2 and a weight of 4 x 4: 32 MACs a product."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from tf_models import RAMP, frozen, load, total, traced  # noqa: E402

from graphcost.errors import MissingSizeError, UsageError  # noqa: E402

PRODUCT = 2 * 4 * 4


@pytest.fixture
def weight():
    return tf.Variable(RAMP)


def repeated(weight, limit):
    def body(x):
        return tf.while_loop(lambda i, y: i < limit, lambda i, y: (i + 1, tf.matmul(y, weight)), [0, x])[1]

    return body


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 10, 100_000])
def test_counter_gives_the_trip_count(weight, trips):
    model = load(traced(repeated(weight, trips)))
    assert [(n.op_type, n.repeat) for n in model.nodes if n.op_type == "MatMul"] == [("MatMul", trips)] * (trips > 0)
    assert total(traced(repeated(weight, trips))).params == 16  # stored even where it never runs


@pytest.mark.parametrize(
    ("start", "step", "limit", "trips"), [(0, 2, 5, 3), (9, -3, 0, 4), (1, 1, 1, 1)], ids=["up", "down", "once"]
)
def test_counters_of_other_steps(weight, start, step, limit, trips):
    def go_on(i, y):
        return i <= limit if step > 0 else i >= limit

    def body(x):
        return tf.while_loop(go_on, lambda i, y: (i + step, tf.matmul(y, weight)), [start, x])[1]

    assert total(traced(body)).macs == trips * PRODUCT


def test_loop_without_even_steps_is_followed(weight):
    def body(x):
        return tf.while_loop(lambda i, y: i < 100, lambda i, y: (i * 2, tf.matmul(y, weight)), [1, x])[1]

    assert total(traced(body)).macs == 7 * PRODUCT  # 1, 2, 4, ..., 64


def test_trip_count_from_the_input_shape(weight):
    def body(x):
        return repeated(weight, tf.shape(x)[0] * 3)(x)

    assert total(traced(body)).macs == 6 * PRODUCT


def test_trip_count_that_is_an_input_is_asked_for(weight):
    concrete = traced(lambda x, n: repeated(weight, n)(x),
                      tf.TensorSpec((None, 4), name="x"), tf.TensorSpec((), tf.int32, name="n"))  # fmt: skip
    with pytest.raises(MissingSizeError, match="--input-value n=N"):
        load(concrete)
    assert total(concrete, input_values={"n": (7,)}).macs == 7 * PRODUCT


def test_loop_that_ends_by_its_data_is_asked_for(weight):
    def body(x):
        return tf.while_loop(lambda y: tf.reduce_sum(y) > 1.0, lambda y: (tf.matmul(y, weight),), [x])[0]

    with pytest.raises(MissingSizeError, match="--input-value while=N"):
        load(traced(body))
    assert total(traced(body), input_values={"while": (7,)}).macs == 7 * PRODUCT
    with pytest.raises(UsageError, match=r"a While cannot take -1"):
        load(traced(body), input_values={"while": (-1,)})


def test_unknown_loop_name_is_refused(weight):
    with pytest.raises(UsageError, match="no input or loop of that name"):
        load(traced(repeated(weight, 3)), input_values={"wile": (7,)})


def test_growing_shapes_are_walked_trip_by_trip(weight):
    def body(x):
        grow = lambda i, y: (i + 1, tf.matmul(tf.concat([y, y], 0), weight))  # noqa: E731
        shapes = [tf.TensorShape(()), tf.TensorShape((None, 4))]
        return tf.while_loop(lambda i, y: i < 3, grow, [0, x], shape_invariants=shapes)[1]

    assert total(traced(body)).macs == (4 + 8 + 16) * 16


def test_lists_have_the_length_of_the_loop(weight):
    def body(x):
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(None, 4))
        for i in tf.range(5):
            rows = rows.write(i, tf.matmul(x, weight))
        return tf.matmul(tf.reshape(rows.stack(), (-1, 4)), weight)

    assert total(traced(body)).macs == 5 * PRODUCT + 5 * PRODUCT


def test_map(weight):
    found = total(traced(lambda x: tf.map_fn(lambda row: tf.linalg.matvec(weight, row), x)))
    assert (found.macs, found.params) == (PRODUCT, 16)


def test_unknown_condition_takes_the_dearer_branch(weight):
    other = tf.Variable(RAMP)

    def body(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(tf.matmul(x, weight), weight),
                       lambda: tf.matmul(x, other))  # fmt: skip

    model = load(traced(body))
    assert total(traced(body)).macs == 2 * PRODUCT
    assert total(traced(body)).params == 32  # of both branches
    assert any("dearer branch (then)" in note for note in model.notes)


@pytest.mark.parametrize(("value", "macs"), [(1, 2 * PRODUCT), (0, PRODUCT)])
def test_known_condition_takes_its_branch(weight, value, macs):
    def body(x, flag):
        return tf.cond(flag > 0, lambda: tf.matmul(tf.matmul(x, weight), weight), lambda: tf.matmul(x, weight))

    concrete = traced(body, tf.TensorSpec((None, 4), name="x"), tf.TensorSpec((), tf.int32, name="flag"))
    assert total(concrete, input_values={"flag": (value,)}).macs == macs


def test_case(weight):
    def body(x):
        which = tf.cast(tf.reduce_sum(x), tf.int32)
        once = lambda: tf.matmul(x, weight)  # noqa: E731
        return tf.switch_case(which, [lambda: x, once, lambda: tf.matmul(once(), weight)])

    assert total(traced(body)).macs == 2 * PRODUCT


# -- TensorFlow 1: frames, switches, merges


def v1_loop(x):
    return tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, tf.matmul(y, tf.constant(RAMP))), [0, x])


def v1_nested(x):
    def inner(y):
        return tf.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, tf.matmul(z, tf.constant(RAMP))), [0, y])[1]

    return tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, inner(y)), [0, x])


def v1_condition(x):
    w = tf.constant(RAMP)
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(tf.matmul(x, w), w), lambda: tf.matmul(x, w))


def v1_known(x):
    w = tf.constant(RAMP)
    flag = tf.compat.v1.placeholder_with_default(False, ())
    return tf.cond(flag, lambda: tf.matmul(tf.matmul(x, w), w), lambda: tf.matmul(x, w))


def v1_loop_in_condition(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: v1_loop(x)[1], lambda: x)


def v1_condition_in_loop(x):
    return tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, v1_condition(y)), [0, x])


def v1_recurrent(x):
    """Two steps of 2 features and a state of 2: ``[2, 4] @ [4, 2]`` a step, then ``[4, 2] @ [2, 4]``."""
    v1, w = tf.compat.v1, tf.constant(RAMP)
    steps = v1.TensorArray(tf.float32, 2).unstack(tf.transpose(tf.reshape(x, (-1, 2, 2)), (1, 0, 2)))

    def step(i, state, out):
        return i + 1, tf.tanh(tf.matmul(tf.concat([steps.read(i), state], 1), w[:, :2])), out.write(i, state)

    start = [0, tf.zeros((tf.shape(x)[0], 2)), v1.TensorArray(tf.float32, 2)]
    out = tf.while_loop(lambda i, state, out: i < 2, step, start)[2].stack()
    return tf.matmul(tf.reshape(out, (-1, 2)), w[:2])


@pytest.mark.parametrize(
    ("build", "macs"),
    [
        (v1_loop, 10 * PRODUCT), (v1_nested, 30 * PRODUCT), (v1_condition, 2 * PRODUCT), (v1_known, PRODUCT),
        (v1_loop_in_condition, 10 * PRODUCT), (v1_condition_in_loop, 20 * PRODUCT),
        (v1_recurrent, 2 * 2 * 4 * 2 + 4 * 2 * 4),
    ],
)  # fmt: skip
def test_old_control_flow(tmp_path, build, macs):
    path = frozen(tmp_path / "old.pb", build, old_control_flow=True)
    found = total(path)
    assert found.macs == macs
    assert found.coverage.unknown == ()
