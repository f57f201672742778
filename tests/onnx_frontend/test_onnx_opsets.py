"""Arguments that moved from attributes to inputs: every opset from 6 on means the same."""

from __future__ import annotations

import onnx.defs
import pytest

from onnx_frontend.onnx_models import find, floats, ints, model, node, one, weight

NEWEST = onnx.defs.onnx_opset_version()
X = {"x": [1, 3, 4, 4]}


def op(op_type, stored=(), outputs=("y",), names=(), inputs=X, **attributes):
    """A function of the opset that makes a model of one operator."""
    listed = list(names) or [*inputs, *(tensor.name for tensor in stored)]
    return lambda opset: model([node(op_type, listed, outputs, "op", **attributes)], inputs, outputs[:1], stored,
                               opset, domains=())  # fmt: skip


# what: [(first opset, last opset, how it is written)], shape of y
FORMS = {
    "squeeze": ([(6, 12, op("Squeeze", axes=[0])), (13, NEWEST, op("Squeeze", [ints("a", [0])]))], (3, 4, 4)),
    "unsqueeze": (
        [(6, 12, op("Unsqueeze", axes=[0])), (13, NEWEST, op("Unsqueeze", [ints("a", [0])]))],
        (1, 1, 3, 4, 4),
    ),
    "reduce-sum": (
        [
            (6, 12, op("ReduceSum", axes=[2, 3], keepdims=0)),
            (13, NEWEST, op("ReduceSum", [ints("a", [2, 3])], keepdims=0)),
        ],
        (1, 3),
    ),
    "reduce-mean": (
        [
            (6, 17, op("ReduceMean", axes=[2, 3], keepdims=0)),
            (18, NEWEST, op("ReduceMean", [ints("a", [2, 3])], keepdims=0)),
        ],
        (1, 3),
    ),
    "reduce-max": (
        [
            (6, 17, op("ReduceMax", axes=[-1], keepdims=1)),
            (18, NEWEST, op("ReduceMax", [ints("a", [-1])], keepdims=1)),
        ],
        (1, 3, 4, 1),
    ),
    "slice": (
        [
            (6, 9, op("Slice", axes=[2], starts=[1], ends=[3])),
            (10, NEWEST, op("Slice", [ints("s", [1]), ints("e", [3]), ints("a", [2])])),
        ],
        (1, 3, 2, 4),
    ),
    "pad": (
        [
            (6, 10, op("Pad", pads=[0, 0, 1, 1, 0, 0, 1, 1])),
            (11, NEWEST, op("Pad", [ints("p", [0, 0, 1, 1, 0, 0, 1, 1])])),
        ],
        (1, 3, 6, 6),
    ),
    "split": (
        [
            (6, 12, op("Split", outputs=("y", "z"), axis=1, split=[1, 2])),
            (13, NEWEST, op("Split", [ints("s", [1, 2])], outputs=("y", "z"), axis=1)),
        ],
        (1, 1, 4, 4),
    ),
    "clip": (
        [
            (6, 10, op("Clip", min=0.0, max=6.0)),
            (11, NEWEST, op("Clip", [floats("l", 0), floats("h", 6)])),
        ],
        (1, 3, 4, 4),
    ),
    "top-k": (
        [(6, 9, op("TopK", outputs=("y", "i"), k=2)), (10, NEWEST, op("TopK", [ints("k", [2])], outputs=("y", "i")))],
        (1, 3, 4, 2),
    ),
    "upsample": (
        [
            (7, 8, op("Upsample", scales=[1.0, 1.0, 2.0, 2.0])),
            (9, 9, op("Upsample", [floats("s", [1, 1, 2, 2])])),
            (10, 10, op("Resize", [floats("s", [1, 1, 2, 2])])),
            (11, NEWEST, op("Resize", [floats("s", [1, 1, 2, 2])], names=["x", "", "s"])),
        ],
        (1, 3, 8, 8),
    ),
    "add-along-an-axis": (
        [
            (6, 6, op("Add", [weight("b", [3])], axis=1, broadcast=1)),
            (7, NEWEST, op("Add", [weight("b", [3, 1, 1])])),
        ],
        (1, 3, 4, 4),
    ),
    "gemm": (
        [
            (6, 6, op("Gemm", [weight("w", [8, 3]), weight("b", [3])], inputs={"x": [2, 8]}, broadcast=1)),
            (7, NEWEST, op("Gemm", [weight("w", [8, 3]), weight("b", [3])], inputs={"x": [2, 8]})),
        ],
        (2, 3),
    ),
    "dropout": (
        [
            (6, 6, op("Dropout", is_test=1)),
            (7, 11, op("Dropout", ratio=0.5)),
            (12, NEWEST, op("Dropout", [floats("r", 0.5)])),
        ],
        (1, 3, 4, 4),
    ),
    "batch-norm": (
        [
            (6, 6, op("BatchNormalization", [weight(key, [3]) for key in "sbmv"], is_test=1)),
            (7, NEWEST, op("BatchNormalization", [weight(key, [3]) for key in "sbmv"])),
        ],
        (1, 3, 4, 4),
    ),
    "softmax": ([(6, NEWEST, op("Softmax", axis=1))], (1, 3, 4, 4)),
    "conv": ([(6, NEWEST, op("Conv", [weight("w", [5, 3, 3, 3])]))], (1, 5, 2, 2)),
    "lstm": (
        [
            (6, NEWEST, op("LSTM", [weight("w", [1, 20, 3]), weight("r", [1, 20, 5])], inputs={"x": [7, 2, 3]},
                           hidden_size=5)),
        ],
        (7, 1, 2, 5),
    ),
    "cast": ([(6, NEWEST, op("Cast", to=10))], (1, 3, 4, 4)),
    "reshape": ([(6, NEWEST, op("Reshape", [ints("t", [0, -1])]))], (1, 48)),
    "concat": ([(6, NEWEST, op("Concat", names=["x", "x"], axis=1))], (1, 6, 4, 4)),
    "max-pool": ([(6, NEWEST, op("MaxPool", kernel_shape=[2, 2], strides=[2, 2]))], (1, 3, 2, 2)),
    "flatten": ([(6, NEWEST, op("Flatten", axis=1))], (1, 48)),
    "max-of-two": ([(6, NEWEST, op("Max", names=["x", "x"]))], (1, 3, 4, 4)),
    "tile": ([(6, NEWEST, op("Tile", [ints("r", [2, 1, 1, 1])]))], (2, 3, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize(("forms", "shape"), FORMS.values(), ids=FORMS)
def test_every_opset_means_the_same(forms, shape) -> None:
    costs = set()
    for first, last, write in forms:
        for opset in range(first, last + 1):
            found = find(write(opset))
            assert (opset, found.shape("y"), found.unknown) == (opset, shape, {})
            costs.add((found.cost.matmul_flops, found.cost.elementwise_flops, found.params, found.buffers))
    assert len(costs) == 1


def test_an_attribute_that_the_opset_does_not_know_is_refused() -> None:
    """Squeeze by attribute in a file that says opset 13: ignoring it would squeeze other axes."""
    from graphcost.errors import ModelFileError

    with pytest.raises(
        ModelFileError, match=r"op \(Squeeze\): no valid operator of opset 13: .*[Uu]nrecognized attribute"
    ):
        find(one("Squeeze", X, opset=13, axes=[0]))


def test_a_newer_opset_than_the_library_knows_is_read_as_its_newest() -> None:
    assert find(one("Relu", X, opset=NEWEST + 5)).shape("y") == (1, 3, 4, 4)
