"""Models that contradict themselves, or would take all memory or time: one clear error, quickly."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from onnx import FunctionProto, ModelProto, TensorProto, helper, numpy_helper

import graphcost
from graphcost.errors import GraphcostError, ModelFileError, ShapeError, UsageError

from .build import BOOL, I64, bare, count, function, graph, ints, model, op, scalar, tensor

X = tensor("x", [2, 3])


def _deep(levels: int) -> ModelProto:
    inner = graph([op("Relu", ["x"], ["y"])], [], ["y"])
    for level in range(levels):
        inner = graph([op("If", ["c"], ["y"], f"if{level}", then_branch=inner, else_branch=inner)], [], ["y"])
    return model(list(inner.node), [X, tensor("c", [], BOOL)])


def _nested_loops(levels: int) -> ModelProto:
    """Built inside out, so that every body holds one body."""
    inner = graph(
        [op("Identity", ["go"], ["on"]), op("Relu", ["h"], ["out"])],
        [tensor("i", [], I64), tensor("go", [], BOOL), tensor("h", None)],
        ["on", "out"],
    )
    for level in range(levels):
        inner = graph(
            [op("Identity", ["go"], ["on"]), op("Loop", ["n", "go", "h"], ["out"], f"loop{level}", body=inner)],
            [tensor("i", [], I64), tensor("go", [], BOOL), tensor("h", None)],
            ["on", "out"],
        )
    loop = op("Loop", ["n", "yes", "x"], ["y"], "outer", body=inner)
    return model([loop], [X], stored=[scalar("n", 2), scalar("yes", True)])


def _calls(depth: int, width: int) -> list[FunctionProto]:
    """``f0`` calls ``f1`` ``width`` times, and so on: ``width ** depth`` operators."""
    made = []
    for level in range(depth):
        nodes = [
            op(f"f{level + 1}" if level + 1 < depth else "Relu", [f"v{i}"], [f"v{i + 1}"],
               domain="local" if level + 1 < depth else "")
            for i in range(width)
        ]  # fmt: skip
        made.append(function(f"f{level}", ["v0"], [f"v{width}"], nodes))
    return made


def _recursive() -> ModelProto:
    own = function("again", ["a"], ["b"], [op("again", ["a"], ["b"], domain="local")])
    return model([op("again", ["x"], ["y"], domain="local")], [X], functions=[own], domains=["local"])


def _mutual() -> ModelProto:
    ping = function("ping", ["a"], ["b"], [op("pong", ["a"], ["b"], domain="local")])
    pong = function("pong", ["a"], ["b"], [op("ping", ["a"], ["b"], domain="local")])
    return model([op("ping", ["x"], ["y"], domain="local")], [X], functions=[ping, pong], domains=["local"])


def _short_payload() -> TensorProto:
    short = numpy_helper.from_array(np.zeros((2, 4), np.float32), "w")
    short.dims[:] = [3, 4]
    return short


def _loop(body_outputs: list[str], trips: int = 3) -> ModelProto:
    body = graph(
        [op("Identity", ["go"], ["on"]), op("Relu", ["h"], ["out"])],
        [tensor("i", [], I64), tensor("go", [], BOOL), tensor("h", [2, 3])],
        body_outputs,
    )
    loop = op("Loop", ["n", "", "x"], ["y"], "loop", body=body)
    return model([loop], [X], stored=[scalar("n", trips)])


HUGE = 2**60

# model -> (error, words of its message)
Broken = tuple[Callable[[], ModelProto], type[GraphcostError], tuple[str, ...]]
BROKEN: dict[str, Broken] = {
    "cycle": (
        lambda: model([op("Add", ["x", "b"], ["a"], "first"), op("Relu", ["a"], ["b"])], [X], ["b"]),
        ModelFileError,
        ("cycle", "first"),
    ),
    "reads-itself": (lambda: model([op("Add", ["x", "y"], ["y"], "own")], [X]), ModelFileError, ("cycle", "own")),
    "made-twice": (
        lambda: model([op("Relu", ["x"], ["y"]), op("Abs", ["x"], ["y"])], [X]),
        ModelFileError,
        ("'y'", "twice"),
    ),
    "input-made-again": (lambda: model([op("Relu", ["x"], ["x"])], [X], ["x"]), ModelFileError, ("'x'",)),
    "undefined-input": (
        lambda: model([op("Add", ["x", "ghost"], ["y"], "sum")], [X]),
        ModelFileError,
        ("sum", "'ghost'"),
    ),
    "undefined-output": (lambda: model([op("Relu", ["x"], ["z"])], [X]), ModelFileError, ("'y'",)),
    "no-outputs": (lambda: model([op("Relu", ["x"], ["z"])], [X], []), ModelFileError, ("outputs",)),
    "negative-size": (
        lambda: model([op("MatMul", ["x", "w"], ["y"])], [X], stored=[bare("w", 3, -4)]),
        ModelFileError,
        ("'w'", "negative", "-4"),
    ),
    "short-payload": (
        lambda: model([op("MatMul", ["x", "w"], ["y"])], [X], stored=[_short_payload()]),
        ModelFileError,
        ("'w'", "[3, 4]"),
    ),
    "unknown-element-type": (
        lambda: model([op("MatMul", ["x", "w"], ["y"])], [X], stored=[bare("w", 3, 4, dtype=99)]),
        ModelFileError,
        ("'w'", "99"),
    ),
    "sizes-contradict": (
        lambda: model([op("MatMul", ["x", "w"], ["y"], "product")], [X], stored=[bare("w", 5, 4)]),
        ShapeError,
        ("product", "MatMul", "[2, 3]", "[5, 4]"),
    ),
    "constant-without-value": (lambda: model([op("Constant", [], ["y"], "c")], [X]), ModelFileError, ("c",)),
    "if-without-branches": (
        lambda: model([op("If", ["c"], ["y"], "choice")], [tensor("c", [], BOOL)]),
        ModelFileError,
        ("choice", "then_branch"),
    ),
    "loop-without-body": (
        lambda: model([op("Loop", ["n", "", "x"], ["y"], "loop")], [X], stored=[scalar("n", 1)]),
        ModelFileError,
        ("loop", "body"),
    ),
    "loop-body-returns-nothing": (lambda: _loop([]), ModelFileError, ("loop",)),
    "scan-without-inputs": (
        lambda: model(
            [op("Scan", ["x"], ["y"], "scan", num_scan_inputs=0, body=graph([], [tensor("a", [3])], ["a"]))], [X]
        ),
        ModelFileError,
        ("scan", "num_scan_inputs"),
    ),
    "function-calls-itself": (_recursive, ModelFileError, ("again", "itself")),
    "functions-call-each-other": (_mutual, ModelFileError, ("itself",)),
    "functions-explode": (
        lambda: model(
            [op("f0", ["x"], ["y"], domain="local")], [X], functions=_calls(40, 8), domains=["local"]
        ),
        ModelFileError,
        ("expands",),
    ),
    "calls-too-deep": (
        lambda: model([op("f0", ["x"], ["y"], domain="local")], [X], functions=_calls(80, 1), domains=["local"]),
        ModelFileError,
        ("deeper than",),
    ),
    "axes-without-end": (
        lambda: model([op("Reshape", ["x", "s"], ["y"], "view")], [X, tensor("s", [HUGE], I64)]),
        ShapeError,
        ("view", "axes"),
    ),
    "negative-batch-axes": (
        lambda: model([op("GatherND", ["x", "i"], ["y"], "rows", batch_dims=-7)], [X, tensor("i", [2, 1], I64)]),
        ShapeError,
        ("rows", "batch_dims", "-7"),
    ),
    "outputs-without-end": (
        lambda: model([op("Split", ["x"], ["a", "y"], "parts", num_outputs=HUGE)], [X]),
        ShapeError,
        ("parts", "num_outputs"),
    ),
    "a-scalar-split": (
        lambda: model([op("SplitToSequence", ["x"], ["s"], "parts"), op("SequenceLength", ["s"], ["y"])],
                      [tensor("x", [])]),
        ShapeError,
        ("parts", "axis 0"),
    ),
    "scalars-joined": (
        lambda: model(
            [op("SequenceConstruct", ["x", "x"], ["s"]), op("ConcatFromSequence", ["s"], ["y"], "join", axis=0)],
            [tensor("x", [])],
        ),
        ShapeError,
        ("join", "axis 0"),
    ),
    "conv-of-a-vector": (
        lambda: model([op("Conv", ["x", "w"], ["y"], "conv")], [tensor("x", [4])], stored=[bare("w", 1, 1, 3)]),
        ShapeError,
        ("conv", "[4]"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_model(kind: str) -> None:
    make, error, words = BROKEN[kind]
    start_s = time.perf_counter()
    with pytest.raises(error) as caught:
        count(make())
    assert time.perf_counter() - start_s < 5
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("levels", [3, 20])
def test_nested_branches_are_linear_work(levels: int) -> None:
    """Each level holds its inner graph twice; the file doubles, the answer does not change."""
    found = count(_deep(min(levels, 8)))
    assert [node.op_type for node in found.model.nodes] == ["Relu"]


def test_nested_loops_multiply() -> None:
    found = count(_nested_loops(5))
    relu = next(node for node in found.model.nodes if node.op_type == "Relu")
    assert relu.repeat == 2**6


def test_functions_may_nest_and_share() -> None:
    found = count(model([op("f0", ["x"], ["y"], domain="local")], [X], functions=_calls(5, 3), domains=["local"]))
    assert len(found.model.nodes) == 3**5


@pytest.mark.parametrize(
    ("made", "numel"),
    {
        "stored": (model([op("Add", ["x", "w"], ["y"])], [tensor("x", [1])], stored=[bare("w", HUGE)]), HUGE),
        "filled": (
            model(
                [op("ConstantOfShape", ["s"], ["w"]), op("Add", ["x", "w"], ["y"])],
                [tensor("x", [1])],
                stored=[ints("s", HUGE)],
            ),
            HUGE,
        ),
    }.values(),
    ids=["stored", "filled"],
)
def test_a_declared_size_is_not_allocated(made: ModelProto, numel: int) -> None:
    tracemalloc.start()
    try:
        found = count(made)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.totals.params == numel
    assert peak_bytes < 50_000_000


@pytest.mark.parametrize(
    "made",
    {
        "expand": model(
            [op("Expand", ["x", "s"], ["y"])], [tensor("x", [1])], stored=[ints("s", HUGE)]
        ),
        "tile": model([op("Tile", ["x", "s"], ["y"])], [tensor("x", [1])], stored=[ints("s", HUGE)]),
        "range": model(
            [op("Range", ["a", "b", "c"], ["r"]), op("Cast", ["r"], ["f"], to=1), op("Add", ["x", "f"], ["y"])],
            [tensor("x", [1])],
            stored=[scalar("a", 0), scalar("b", HUGE), scalar("c", 1)],
        ),
        "empty": model([op("Relu", ["x"], ["y"])], [tensor("x", [HUGE, 0])]),
        "empty-filled": model(
            [op("ConstantOfShape", ["s"], ["w"]), op("Concat", ["x", "w"], ["y"], axis=0)],
            [tensor("x", [HUGE, 0])],
            stored=[ints("s", HUGE, 0)],
        ),
        "input": model([op("Relu", ["x"], ["y"])], [tensor("x", [HUGE, 4])]),
        "split": model(
            [op("SplitToSequence", ["x"], ["s"]), op("SequenceAt", ["s", "i"], ["y"])],
            [tensor("x", [HUGE])],
            stored=[scalar("i", 0)],
        ),
        "loop": _loop(["on", "out", "out"], 2**50),
        "scan": model(
            [op("Scan", ["x"], ["y"], num_scan_inputs=1,
                body=graph([op("Relu", ["a"], ["b"])], [tensor("a", [])], ["b"]))],
            [tensor("x", [HUGE])],
        ),
    }.values(),
    ids=["expand", "tile", "range", "empty", "empty-filled", "input", "split", "loop", "scan"],
)  # fmt: skip
def test_huge_sizes_are_numbers_only(made: ModelProto) -> None:
    tracemalloc.start()
    try:
        count(made)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 50_000_000


def test_an_input_that_is_a_sequence() -> None:
    """No file states its sizes: that is said, and nothing is guessed."""
    info = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    found = count(model([op("SequenceAt", ["s", "i"], ["a"]), op("Relu", ["a"], ["y"])], [info],
                        stored=[scalar("i", 0)]))  # fmt: skip
    assert "'s' is a sequence" in found.notes
    assert "Relu" in found.unknown


@pytest.mark.parametrize(
    "options", [{"batch": -3}, {"batch": 0}, {"dims": {"b": -1}}, {"input_shapes": {"x": (2, -3)}}]
)
def test_sizes_below_zero_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"a size must be [01] or more"):
        count(model([op("Relu", ["x"], ["y"])], [tensor("x", ["b", 3])]), **options)


@pytest.mark.parametrize("wrong", ["text", [1.5], 0, -1, 2**40])
def test_a_scan_whose_count_is_no_number_is_refused(wrong: object) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["y"])],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("s", "x")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("t", "y")],
    )
    node = helper.make_node("Scan", ["s0", "xs"], ["s1", "ys"], body=body, num_scan_inputs=wrong, name="scan")
    made = helper.make_model(
        helper.make_graph(
            [node],
            "g",
            [
                helper.make_tensor_value_info("s0", TensorProto.FLOAT, [2]),
                helper.make_tensor_value_info("xs", TensorProto.FLOAT, [5, 2]),
            ],
            [helper.make_empty_tensor_value_info("ys")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    with pytest.raises(ModelFileError, match="num_scan_inputs"):
        graphcost.load(made)
