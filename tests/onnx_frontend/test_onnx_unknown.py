"""What nobody counted is reported by name; what reaches no output is said; order does not matter."""

from __future__ import annotations

import pytest

from graphcost.errors import ModelFileError
from onnx_frontend.onnx_models import find, ints, model, node, value, weight

BETWEEN = [
    node("MatMul", ["x", "w1"], ["a"], "first"),
    node("FancyOp", ["a"], ["b"], "fancy", domain="acme.ai"),
    node("MatMul", ["b", "w2"], ["y"], "second"),
]
STORED = {"w1": [8, 8], "w2": [8, 4]}
FIRST, SECOND = 2 * 4 * 8 * 8, 2 * 4 * 4 * 8


def test_an_unknown_operator_whose_shape_is_stated() -> None:
    source = model(BETWEEN, {"x": [4, 8]}, ["y"], STORED, domains=["acme.ai"])
    source.graph.value_info.append(value("b", [4, 8]))
    found = find(source)
    assert found.flops == FIRST + SECOND
    assert (found.unknown, found.params) == ({"acme.ai.FancyOp": 1}, 64 + 32)


def test_an_unknown_operator_without_a_shape_takes_what_follows_along() -> None:
    found = find(model(BETWEEN, {"x": [4, 8]}, ["y"], STORED, domains=["acme.ai"]))
    assert found.flops == FIRST
    assert (found.unknown, found.params) == ({"acme.ai.FancyOp": 1, "MatMul": 1}, 64 + 32)


def test_stated_shapes_may_name_the_batch() -> None:
    source = model(BETWEEN, {"x": ["batch", 8]}, ["y"], STORED, domains=["acme.ai"])
    source.graph.value_info.append(value("b", ["batch", 8]))
    assert find(source, batch=3).flops == (FIRST + SECOND) // 4 * 3


def test_the_output_s_stated_shape_counts_too() -> None:
    steps = [node("Known", ["x"], ["y"], domain="acme.ai")]
    found = find(model(steps, {"x": [4, 8]}, {"y": [4, 2]}, domains=["acme.ai"]))
    assert (found.shape("y"), found.unknown) == ((4, 2), {"acme.ai.Known": 1})


def test_unknown_operators_of_the_standard_s_domain() -> None:
    found = find(model([node("NoSuchOperator", ["x"], ["y"])], {"x": [4, 8]}, ["y"]))
    assert found.unknown == {"NoSuchOperator": 1}


def test_a_domain_that_is_not_imported_is_unknown_all_the_same() -> None:
    found = find(model([node("Op", ["x"], ["y"], domain="nobody")], {"x": [4, 8]}, ["y"], domains=()))
    assert found.unknown == {"nobody.Op": 1}


def test_weights_of_an_unknown_operator_are_parameters() -> None:
    """Any float tensor of several elements that a private operator reads; sizes and factors are not."""
    steps = [node("Op", ["x", "w", "alpha", "axes"], ["y"], domain="acme.ai")]
    stored = [weight("w", [8, 3]), weight("alpha", [1]), ints("axes", [0, 1])]
    assert find(model(steps, {"x": [4, 8]}, ["y"], stored, domains=["acme.ai"])).params == 24


def test_an_unknown_operator_on_constants_is_not_folded_away() -> None:
    steps = [node("Op", ["w"], ["v"], domain="acme.ai"), node("MatMul", ["x", "v"], ["y"])]
    found = find(model(steps, {"x": [4, 8]}, ["y"], {"w": [8, 3]}, domains=["acme.ai"]))
    assert found.unknown == {"acme.ai.Op": 1, "MatMul": 1}


def test_the_standard_s_domain_has_two_spellings() -> None:
    found = find(model([node("MatMul", ["x", "w"], ["y"], domain="ai.onnx")], {"x": [4, 8]}, ["y"], {"w": [8, 3]}))
    assert (found.flops, found.unknown) == (2 * 4 * 3 * 8, {})


def test_operators_that_reach_no_output_are_said_and_not_counted() -> None:
    steps = [node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["x", "v"], ["dead"]), node("Relu", ["dead"], ["too"])]
    found = find(model(steps, {"x": [4, 8]}, ["y"], {"w": [8, 3], "v": [8, 99]}))
    assert (found.flops, found.params) == (2 * 4 * 3 * 8, 24)
    assert found.notes == "2 operators reach no output and are not counted"


def test_a_dead_operator_may_be_anything() -> None:
    steps = [node("MatMul", ["x", "w"], ["y"]), node("Conv", ["nowhere"], ["dead"])]
    assert find(model(steps, {"x": [4, 8]}, ["y"], {"w": [8, 3]})).flops == 2 * 4 * 3 * 8


def test_operators_out_of_order_are_sorted_and_said() -> None:
    steps = [node("MatMul", ["h", "w2"], ["y"], "late"), node("MatMul", ["x", "w1"], ["h"], "early")]
    found = find(model(steps, {"x": [4, 8]}, ["y"], {"w1": [8, 8], "w2": [8, 3]}))
    assert list(found.ops) == ["early", "late"]
    assert found.flops == 2 * 4 * 8 * 8 + 2 * 4 * 3 * 8
    assert found.notes == "operators of 'g' are not in execution order; they were sorted"


def test_nameless_operators_go_by_their_output() -> None:
    assert list(find(model([node("Relu", ["x"], ["y"])], {"x": [4]}, ["y"])).ops) == ["y"]


def test_an_input_that_is_an_output() -> None:
    found = find(model([node("Relu", ["x"], ["y"])], {"x": [4]}, ["y", "x"]))
    assert found.model.outputs == ("y", "x")


def test_a_graph_without_operators() -> None:
    found = find(model([], {"x": [4]}, ["x"]))
    assert (found.flops, found.ops) == (0, {})


@pytest.mark.parametrize("name", ["x", "w"])
def test_an_operator_may_not_make_an_input_or_a_stored_tensor_anew(name) -> None:
    steps = [node("MatMul", ["x", "w"], ["y"]), node("Relu", ["y"], [name]), node("Neg", [name], ["z"])]
    with pytest.raises(ModelFileError, match=f"value '{name}' is produced twice"):
        find(model(steps, {"x": [4, 8]}, ["z"], {"w": [8, 3]}))
