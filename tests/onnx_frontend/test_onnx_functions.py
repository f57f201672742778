"""Model-local functions: opened where they are called, their stored tensors counted once."""

from __future__ import annotations

import pytest
from onnx import AttributeProto, helper

from graphcost.errors import ModelFileError
from onnx_frontend.onnx_models import OPSET, find, floats, graph, ints, model, node, ref, weight

STANDARD = [helper.make_opsetid("", OPSET)]


def function(name, inputs, outputs, nodes, domain="local", attributes=(), defaults=(), imports=STANDARD):
    return helper.make_function(domain, name, inputs, outputs, nodes, imports, attributes, defaults)


def test_two_calls_with_different_shapes_share_the_body_s_weight() -> None:
    stored = node("Constant", [], ["w"], value=floats("w", [[0.5] * 3] * 8))
    dense = function("Dense", ["x"], ["y"], [stored, node("MatMul", ["x", "w"], ["y"])])
    calls = [node("Dense", ["a"], ["b"], "one", domain="local"), node("Dense", ["c"], ["d"], "two", domain="local")]
    found = find(model(calls, {"a": [4, 8], "c": [9, 8]}, ["b", "d"], functions=[dense], domains=["local"]))
    assert found.flops == 2 * (4 + 9) * 3 * 8
    assert (found.params, found.param_names) == (24, ("local.Dense/w",))
    assert list(found.ops) == ["one/y", "two/y"]


def test_calls_nest() -> None:
    inner = function("Dense", ["x", "w"], ["y"], [node("MatMul", ["x", "w"], ["y"])])
    body = [
        node("Dense", ["x", "w1"], ["h"], "up", domain="local"),
        node("Dense", ["h", "w2"], ["y"], "down", domain="local"),
    ]
    imports = [*STANDARD, helper.make_opsetid("local", 1)]
    outer = function("Mlp", ["x", "w1", "w2"], ["y"], body, imports=imports)
    call = node("Mlp", ["x", "w1", "w2"], ["y"], "mlp", domain="local")
    stored = {"w1": [8, 16], "w2": [16, 2]}
    found = find(model([call], {"x": [4, 8]}, ["y"], stored, functions=[inner, outer], domains=["local"]))
    assert (found.flops, found.params) == (2 * 4 * 16 * 8 + 2 * 4 * 2 * 16, 8 * 16 + 16 * 2)
    assert list(found.ops) == ["mlp/up/y", "mlp/down/y"]
    assert [op.module for op in found.ops.values()] == ["mlp.up", "mlp.down"]


@pytest.mark.parametrize(
    ("given", "inputs", "flops"),
    [
        ({"transB": 1}, {"x": [4, 8], "w": [3, 8]}, 2 * 4 * 3 * 8),
        ({"transB": 0}, {"x": [4, 8], "w": [8, 3]}, 2 * 4 * 3 * 8),
        ({}, {"x": [4, 8], "w": [8, 3]}, 2 * 4 * 3 * 8),  # left out: Gemm's own default
    ],
)
def test_attribute_references(given, inputs, flops) -> None:
    gemm = node("Gemm", ["x", "w"], ["y"])
    gemm.attribute.append(ref("transB", "transB", AttributeProto.INT))
    body = function("Linear", ["x", "w"], ["y"], [gemm], attributes=["transB"])
    call = node("Linear", ["x", "w"], ["y"], domain="local", **given)
    assert find(model([call], inputs, ["y"], functions=[body], domains=["local"])).flops == flops


def test_attribute_defaults() -> None:
    gemm = node("Gemm", ["x", "w"], ["y"])
    gemm.attribute.append(ref("transB", "flip", AttributeProto.INT))
    body = function("Linear", ["x", "w"], ["y"], [gemm], defaults=[helper.make_attribute("flip", 1)])
    call = node("Linear", ["x", "w"], ["y"], domain="local")
    found = find(model([call], {"x": [4, 8], "w": [3, 8]}, ["y"], functions=[body], domains=["local"]))
    assert found.flops == 2 * 4 * 3 * 8
    changed = node("Linear", ["x", "w"], ["y"], domain="local", flip=0)
    found = find(model([changed], {"x": [4, 8], "w": [8, 3]}, ["y"], functions=[body], domains=["local"]))
    assert found.flops == 2 * 4 * 3 * 8


def test_references_pass_through_nested_calls_and_subgraphs() -> None:
    gemm = node("Gemm", ["x", "w"], ["out"])
    gemm.attribute.append(ref("transB", "flip", AttributeProto.INT))
    choice = node(
        "If", ["c"], ["y"], then_branch=graph([gemm], {}, ["out"]), else_branch=graph([gemm], {}, ["out"])
    )  # fmt: skip
    inner = function("Linear", ["x", "w", "c"], ["y"], [choice], attributes=["flip"])
    call = node("Linear", ["x", "w", "c"], ["y"], domain="local")
    call.attribute.append(ref("flip", "turned", AttributeProto.INT))
    imports = [*STANDARD, helper.make_opsetid("local", 1)]
    outer = function("Block", ["x", "w", "c"], ["y"], [call], attributes=["turned"], imports=imports)
    top = node("Block", ["x", "w", "c"], ["y"], domain="local", turned=1)
    inputs = {"x": [4, 8], "w": [3, 8], "c": ("BOOL", [])}
    found = find(model([top], inputs, ["y"], functions=[inner, outer], domains=["local"]))
    assert found.flops == 2 * 4 * 3 * 8


@pytest.mark.parametrize("names", [["x", "w"], ["x", "w", ""]])
def test_an_input_that_the_call_leaves_out_is_absent_inside(names) -> None:
    body = function("Linear", ["x", "w", "b"], ["y"], [node("Gemm", ["x", "w", "b"], ["y"], "mm")])
    call = node("Linear", names, ["y"], domain="local")
    found = find(model([call], {"x": [4, 8]}, ["y"], {"w": [8, 3]}, functions=[body], domains=["local"]))
    assert (found.flops, found.unknown) == (2 * 4 * 3 * 8, {})
    assert found.cost.elementwise_flops == 0  # no bias to add


def test_a_function_has_opsets_of_its_own() -> None:
    """The body squeezes by attribute as of opset 11, the model by input as of opset 21."""
    squeeze = node("Squeeze", ["x"], ["s"], axes=[0])
    old = function("Old", ["x", "w"], ["y"], [squeeze, node("MatMul", ["s", "w"], ["y"])],
                   imports=[helper.make_opsetid("", 11)])  # fmt: skip
    steps = [node("Old", ["x", "w"], ["h"], domain="local"), node("Unsqueeze", ["h", "axes"], ["y"])]
    stored = [weight("w", [8, 3]), ints("axes", [0])]
    found = find(model(steps, {"x": [1, 4, 8]}, ["y"], stored, functions=[old], domains=["local"]))
    assert (found.flops, found.shape("y")) == (2 * 4 * 3 * 8, (1, 4, 3))


def test_overloads() -> None:
    one = function("Dense", ["x", "w"], ["y"], [node("MatMul", ["x", "w"], ["y"])])
    two = function("Dense", ["x", "w"], ["y"], [node("Gemm", ["x", "w"], ["y"], transB=1)])
    two.overload = "flipped"
    call = node("Dense", ["x", "w"], ["y"], domain="local")
    call.overload = "flipped"
    found = find(model([call], {"x": [4, 8]}, ["y"], {"w": [3, 8]}, functions=[one, two], domains=["local"]))
    assert [op.op_type for op in found.ops.values()] == ["Gemm"]


@pytest.mark.parametrize("length", [1, 2])
def test_recursion_is_refused(length) -> None:
    """A function that calls itself, and two that call each other."""
    imports = [*STANDARD, helper.make_opsetid("local", 1)]
    ring = [
        function(
            f"F{at}", ["x"], ["y"], [node(f"F{(at + 1) % length}", ["x"], ["y"], domain="local")], imports=imports
        )
        for at in range(length)
    ]
    with pytest.raises(ModelFileError, match=r"calls nest deeper than 64; does function 'F\d' call itself\?"):
        find(model([node("F0", ["x"], ["y"], domain="local")], {"x": [4]}, ["y"], functions=ring, domains=["local"]))


def test_a_function_stands_for_an_operator_of_the_same_name() -> None:
    """Exporters ship a body for operators of their own domain: the body counts."""
    body = function("FancyOp", ["x", "w"], ["y"], [node("MatMul", ["x", "w"], ["y"])], domain="acme")
    call = node("FancyOp", ["x", "w"], ["y"], domain="acme")
    found = find(model([call], {"x": [4, 8]}, ["y"], {"w": [8, 3]}, functions=[body], domains=["acme"]))
    assert (found.flops, found.unknown) == (2 * 4 * 3 * 8, {})
