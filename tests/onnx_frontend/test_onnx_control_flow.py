"""If, Loop and Scan: which branch, how many trips, and what is asked when nobody can tell."""

from __future__ import annotations

import pytest
from onnx import helper

from graphcost.errors import MissingSizeError, ModelFileError, UsageError
from onnx_frontend.onnx_models import find, floats, graph, ints, model, node, weight

BOOL = ("BOOL", [])
SCALAR = ("INT64", [])


def branch(name: str, width: int):
    """x [4, 8] times a weight of ``width`` columns, which is stored in the branch."""
    return graph([node("MatMul", ["x", "w"], ["out"], "mm")], {}, {"out": [4, width]}, {"w": [8, width]}, name)


def choice(condition: str = "c", stored=(), extra=(), **inputs):
    made = node("If", [condition], ["y"], "if", then_branch=branch("small", 2), else_branch=branch("large", 16))
    return model([*extra, made], {"x": [4, 8], **inputs}, ["y"], stored)


SMALL = 2 * 4 * 2 * 8
LARGE = 2 * 4 * 16 * 8


def test_an_unknown_condition_counts_the_dearer_branch() -> None:
    found = find(choice(c=BOOL))
    assert found.flops == LARGE
    assert "If 'if': its condition is not known; the dearer branch (else) is counted" in found.notes


def test_parameters_of_both_branches_are_stored() -> None:
    assert find(choice(c=BOOL)).params == 8 * 2 + 8 * 16


@pytest.mark.parametrize(("value", "flops"), [(True, SMALL), (False, LARGE)])
def test_a_stored_condition_decides(value, flops) -> None:
    condition = helper.make_tensor("c", 9, [], [value])
    found = find(choice(stored=[condition]))
    assert (found.flops, found.params, found.notes) == (flops, 8 * 2 + 8 * 16, "")


@pytest.mark.parametrize(("value", "flops"), [(1, SMALL), (0, LARGE)])
def test_the_user_decides_a_condition_that_is_an_input(value, flops) -> None:
    assert find(choice(c=BOOL), input_values={"c": (value,)}).flops == flops


def test_the_user_decides_a_condition_computed_from_an_input() -> None:
    """Voice detectors choose their network by the sampling rate."""
    compare = node("Equal", ["rate", "wideband"], ["c"])
    source = choice(extra=[compare], stored=[ints("wideband", 16000)], rate=SCALAR)
    assert find(source, input_values={"rate": (16000,)}).flops == SMALL
    assert find(source, input_values={"rate": (8000,)}).flops == LARGE


def test_nested_choices() -> None:
    inner = node("If", ["d"], ["z"], "inner", then_branch=branch("a", 2), else_branch=branch("b", 4))
    nested = graph([inner], {}, {"z": [4, None]}, name="nested")
    outer = node("If", ["c"], ["y"], "outer", then_branch=nested, else_branch=branch("e", 3))
    source = model([outer], {"x": [4, 8], "c": BOOL, "d": BOOL}, ["y"])
    assert find(source, input_values={"c": (1,), "d": (0,)}).flops == 2 * 4 * 4 * 8
    assert find(source, input_values={"c": (1,)}).flops == 2 * 4 * 4 * 8  # the dearer of 2 and 4 columns
    assert find(source, input_values={"c": (0,)}).flops == 2 * 4 * 3 * 8
    assert find(source).params == 8 * (2 + 4 + 3)


def test_a_branch_that_does_not_fit_is_not_taken() -> None:
    wrong = graph([node("MatMul", ["x", "w"], ["out"])], {}, ["out"], {"w": [9, 100]}, "wrong")
    source = node("If", ["c"], ["y"], "if", then_branch=wrong, else_branch=branch("right", 2))
    assert find(model([source], {"x": [4, 8], "c": BOOL}, ["y"])).flops == 2 * 4 * 2 * 8


def loop_body(steps, carried, scans=(), stored=(), keep="keep_on"):
    """A Loop's body; ``carried`` maps formal inputs to (shape, output)."""
    formals = {"i": SCALAR, "go": BOOL, **{name: shape for name, (shape, _) in carried.items()}}
    passed = [node("Identity", ["go"], ["keep_on"])] if keep == "keep_on" else []
    return graph([*passed, *steps], formals, [keep, *(out for _, out in carried.values()), *scans], stored, "body")


STEP = loop_body([node("MatMul", ["h", "w"], ["h2"], "mm")], {"h": ([4, 8], "h2")}, ["h2"], {"w": [8, 8]})
ONCE = 2 * 4 * 8 * 8


def loop(trips: str, stored=(), condition: str = "", body=STEP, name="loop", **inputs):
    made = node("Loop", [trips, condition, "x"], ["y", "all"], name, body=body)
    return model([made], {"x": [4, 8], **inputs}, ["y", "all"], stored)


def test_a_stored_trip_count() -> None:
    found = find(loop("n", [ints("n", 10)]))
    assert (found.flops, found.params, found.notes) == (10 * ONCE, 64, "")
    assert [op.repeat for op in found.ops.values() if op.op_type == "MatMul"] == [10]


def test_a_trip_count_that_is_an_input_is_asked_for_by_name() -> None:
    source = loop("n", n=SCALAR)
    with pytest.raises(MissingSizeError, match="Loop 'loop': its trip count is not known; give --input-value n=N"):
        find(source)
    assert find(source, input_values={"n": (7,)}).flops == 7 * ONCE


def test_a_computed_trip_count_is_asked_for_by_the_loop_s_name() -> None:
    count = node("ReduceMax", ["lengths"], ["n"], keepdims=0)
    made = node("Loop", ["n", "", "x"], ["y", "all"], body=STEP)
    source = model([count, made], {"x": [4, 8], "lengths": ("INT64", [3])}, ["y", "all"])
    with pytest.raises(MissingSizeError, match=r"Loop 'y': .* give --input-value y=N"):
        find(source)
    assert find(source, input_values={"y": (7,)}).flops == 7 * ONCE
    assert find(source, input_values={"lengths": (3, 9, 5)}).flops == 9 * ONCE


def test_no_trips() -> None:
    found = find(loop("n", [ints("n", 0)]))
    assert (found.flops, found.params) == (0, 64)


def test_a_false_condition_is_no_trips() -> None:
    assert find(loop("n", [ints("n", 5), helper.make_tensor("c", 9, [], [False])], "c")).flops == 0


def test_huge_trip_counts_cost_no_memory() -> None:
    found = find(loop("n", [ints("n", 2**40)]))
    assert found.flops == 2**40 * ONCE


@pytest.mark.parametrize("trips", [-1, float("nan"), float("inf")])
def test_trip_counts_that_are_none(trips) -> None:
    with pytest.raises(UsageError, match="--input-value loop: a Loop cannot take"):
        find(loop("n", [ints("n", 3)]), input_values={"loop": (trips,)})


def test_loops_inside_loops_multiply() -> None:
    inner = node("Loop", ["three", "", "h"], ["h2", "seen"], "inner", body=STEP)
    outer = loop_body([inner], {"h": ([4, 8], "h2")}, ["h2"])
    found = find(loop("five", [ints("three", 3), ints("five", 5)], body=outer))
    assert found.flops == 5 * 3 * ONCE


def test_an_inner_loop_that_grows_with_the_outer_one() -> None:
    """Trips 0, 1, 2, 3: walked one by one."""
    inner = node("Loop", ["i", "", "h"], ["h2", "seen"], "inner", body=STEP)
    outer = loop_body([inner], {"h": ([4, 8], "h2")}, ["h2"])
    assert find(loop("four", [ints("four", 4)], body=outer)).flops == (0 + 1 + 2 + 3) * ONCE


def test_a_shape_that_grows_is_followed_trip_by_trip() -> None:
    """A cache gains a row a trip: 1, 2, 3 rows of 8 times 8 columns."""
    steps = [
        node("Concat", ["cache", "row"], ["longer"], axis=0),
        node("MatMul", ["longer", "w"], ["seen"]),
        node("ReduceSum", ["seen"], ["total"], keepdims=0),
    ]
    body = loop_body(steps, {"cache": ([None, 8], "longer")}, ["total"], {"w": [8, 8]})
    made = node("Loop", ["n", "", "x"], ["y", "all"], "loop", body=body)
    found = find(model([made], {"x": [0, 8], "row": [1, 8]}, ["y", "all"], [ints("n", 3)]))
    assert found.flops == 2 * (1 + 2 + 3) * 8 * 8
    assert found.params == 64


def test_a_slice_that_depends_on_the_trip_is_followed_trip_by_trip() -> None:
    """The trip's number decides how many rows take part: 1, 2, 3."""
    steps = [
        node("Add", ["i", "one"], ["end"]),
        node("Unsqueeze", ["end", "zero"], ["ends"]),
        node("Slice", ["x", "zero", "ends"], ["rows"]),
        node("MatMul", ["rows", "w"], ["seen"]),
        node("ReduceSum", ["seen"], ["total"], keepdims=0),
        node("Identity", ["h"], ["h2"]),
    ]
    body = loop_body(
        steps, {"h": ([4, 8], "h2")}, ["total"], [weight("w", [8, 8]), ints("one", 1), ints("zero", [0])]
    )
    assert find(loop("n", [ints("n", 3)], body=body)).flops == 2 * (1 + 2 + 3) * 8 * 8


def test_a_loop_that_only_its_condition_ends() -> None:
    """while i < 5: the condition is computed from the trip's number, so it is known."""
    steps = [node("MatMul", ["h", "w"], ["h2"]), node("Less", ["i", "last"], ["more"])]
    body = loop_body(steps, {"h": ([4, 8], "h2")}, ["h2"], [weight("w", [8, 8]), ints("last", 4)], keep="more")
    assert find(loop("", body=body)).flops == 5 * ONCE
    endless = 2**63 - 1  # what exporters write for `while`
    assert find(loop("n", [ints("n", endless)], body=body)).flops == 5 * ONCE


def test_a_loop_ended_by_data_is_asked_for() -> None:
    steps = [
        node("MatMul", ["h", "w"], ["h2"]),
        node("ReduceSum", ["h2"], ["norm"], keepdims=0),
        node("Greater", ["norm", "limit"], ["more"]),
    ]
    body = loop_body(steps, {"h": ([4, 8], "h2")}, ["h2"], [weight("w", [8, 8]), floats("limit", 0.1)], keep="more")
    with pytest.raises(MissingSizeError, match=r"ends by a condition on computed data.* --input-value loop=N"):
        find(loop("", body=body))
    assert find(loop("", body=body), input_values={"loop": (6,)}).flops == 6 * ONCE
    bounded = find(loop("n", [ints("n", 9)], body=body))
    assert bounded.flops == 9 * ONCE
    assert "counted for all 9 trips; its condition may end it earlier" in bounded.notes


def test_a_body_may_be_given_too_little() -> None:
    made = node("Loop", ["n"], ["y"], "loop", body=STEP)
    with pytest.raises(ModelFileError, match="its body takes 3 inputs, 2 are given"):
        find(model([made], {"x": [4, 8]}, ["y"], [ints("n", 2)]))


def scan_body(features: int = 3):
    steps = [
        node("MatMul", ["step", "wx"], ["a"]),
        node("MatMul", ["h", "wh"], ["b"]),
        node("Add", ["a", "b"], ["h2"]),
        node("Identity", ["h2"], ["seen"]),
    ]
    return graph(steps, {"h": [5], "step": [features]}, ["h2", "seen"], {"wx": [features, 5], "wh": [5, 5]}, "body")


def test_scan_runs_once_for_every_slice() -> None:
    made = node("Scan", ["h0", "x"], ["h", "all"], "scan", body=scan_body(), num_scan_inputs=1)
    found = find(model([made], {"h0": [5], "x": [6, 3]}, ["h", "all"]))
    assert (found.flops, found.params) == (6 * 2 * (3 * 5 + 5 * 5), 15 + 25)


def test_scan_over_another_axis() -> None:
    made = node(
        "Scan", ["h0", "x"], ["h", "all"], "scan", body=scan_body(), num_scan_inputs=1,
        scan_input_axes=[1], scan_output_axes=[1],
    )  # fmt: skip
    after = node("MatMul", ["all", "w"], ["y"])  # [5, 6] times [6, 2]
    found = find(model([made, after], {"h0": [5], "x": [3, 6]}, ["h", "y"], {"w": [6, 2]}))
    assert found.flops == 6 * 2 * (3 * 5 + 5 * 5) + 2 * 5 * 2 * 6


def test_scan_of_opset_8_has_a_batch_in_front() -> None:
    made = node("Scan", ["", "h0", "x"], ["h", "all"], "scan", body=scan_body(), num_scan_inputs=1)
    after = node("MatMul", ["all", "w"], ["y"])  # [2, 6, 5] times [5, 2]
    found = find(model([made, after], {"h0": [2, 5], "x": [2, 6, 3]}, ["h", "y"], {"w": [5, 2]}, opset=8, domains=()))
    assert found.flops == 2 * 6 * 2 * (3 * 5 + 5 * 5) + 2 * (2 * 6 * 2) * 5


def test_scan_without_a_scanned_input_is_refused() -> None:
    made = node("Scan", ["h0", "x"], ["h", "all"], "scan", body=scan_body())
    with pytest.raises(ModelFileError, match=r"scan \(Scan\)"):
        find(model([made], {"h0": [5], "x": [6, 3]}, ["h", "all"]))


def test_sequences_built_in_a_loop() -> None:
    """Three chunks of [4, 8] are collected and joined: [12, 8] times [8, 2]."""
    insert = [node("SequenceInsert", ["s", "x"], ["s2"])]
    formals = {"i": SCALAR, "go": BOOL}
    body = graph([node("Identity", ["go"], ["keep_on"]), *insert], formals, ["keep_on", "s2"], name="body")
    body.input.append(
        helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [4, 8])))
    )
    steps = [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["n", "", "none"], ["chunks"], "loop", body=body),
        node("ConcatFromSequence", ["chunks"], ["joined"], axis=0),
        node("MatMul", ["joined", "w"], ["y"]),
    ]
    found = find(model(steps, {"x": [4, 8]}, ["y"], [ints("n", 3), weight("w", [8, 2])]))
    assert (found.flops, found.unknown) == (2 * 12 * 2 * 8, {})


def test_a_map_over_a_sequence_runs_for_every_element() -> None:
    body = graph([node("MatMul", ["part", "w"], ["out"])], {"part": [None, 8]}, ["out"], {"w": [8, 2]}, "body")
    steps = [
        node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0),
        node("SequenceMap", ["parts"], ["outs"], body=body),
        node("ConcatFromSequence", ["outs"], ["y"], axis=0),
    ]
    found = find(model(steps, {"x": [6, 8]}, ["y"], [ints("sizes", [1, 5])]))
    assert (found.flops, found.params, found.unknown) == (2 * (1 + 5) * 2 * 8, 16, {})
    assert found.shape("y") == (6, 2)


def test_a_sequence_that_is_an_input_leaves_what_follows_uncounted() -> None:
    steps = [node("SequenceAt", ["parts", "zero"], ["first"]), node("MatMul", ["first", "w"], ["y"])]
    source = model(steps, {}, ["y"], [ints("zero", 0), weight("w", [8, 2])])
    source.graph.input.append(
        helper.make_value_info("parts", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [4, 8])))
    )
    found = find(source)
    assert found.unknown == {"MatMul": 1}
    assert "input 'parts' is a sequence; what needs its sizes is not counted" in found.notes
