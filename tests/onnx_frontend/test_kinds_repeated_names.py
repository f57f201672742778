"""Operators that share a name, which the standard allows: their parts stay apart."""

from __future__ import annotations

import pytest
from onnx import GraphProto, NodeProto

from .build import BOOL, bare, count, function, graph, model, op, scalar, tensor

X = tensor("x", [2, 3])
CONDITION = tensor("c", [], BOOL)


def _product(columns: int) -> GraphProto:
    """A branch that holds its weight ``[3, columns]``, always under the same name."""
    return graph([op("MatMul", ["x", "w"], ["o"], "product")], [], ["o"], [bare("w", 3, columns)])


def _choice(output: str, then: int, other: int) -> list[NodeProto]:
    return [op("If", ["c"], [output], "choice", then_branch=_product(then), else_branch=_product(other))]


def test_two_branches_of_one_name_hold_four_weights() -> None:
    found = count(model(_choice("a", 4, 5) + _choice("b", 6, 7), [X, CONDITION], ["a", "b"]))
    assert found.flops == 2 * 2 * 3 * 5 + 2 * 2 * 3 * 7  # the dearer branch of each
    assert found.totals.params == 3 * 4 + 3 * 5 + 3 * 6 + 3 * 7


@pytest.mark.parametrize("taken", [True, False])
def test_a_known_condition_keeps_the_other_branch_s_weights(taken: bool) -> None:
    nodes = _choice("a", 4, 5) + _choice("b", 6, 7)
    found = count(model(nodes, [X], ["a", "b"], [scalar("c", taken)]))
    assert found.flops == 2 * 2 * 3 * (4 + 6 if taken else 5 + 7)
    assert found.totals.params == 3 * (4 + 5 + 6 + 7)


def test_a_function_called_twice_has_one_set_of_weights() -> None:
    inner = function("block", ["x", "c"], ["a"], _choice("a", 4, 5))
    calls = [op("block", ["x", "c"], [name], "call", domain="local") for name in ("p", "q")]
    found = count(model(calls, [X, CONDITION], ["p", "q"], functions=[inner], domains=["local"]))
    assert found.flops == 2 * (2 * 2 * 3 * 5)
    assert found.totals.params == 3 * 4 + 3 * 5


def test_nested_branches_of_one_name() -> None:
    def around(output: str, columns: int) -> GraphProto:
        return graph(_choice(output, columns, columns + 1), [], [output])

    outer = op("If", ["c"], ["y"], "choice", then_branch=around("p", 4), else_branch=around("q", 6))
    found = count(model([outer], [X, CONDITION]))
    assert found.flops == 2 * 2 * 3 * 7
    assert found.totals.params == 3 * (4 + 5 + 6 + 7)


def test_operators_of_one_name() -> None:
    nodes = [op("MatMul", ["x", "w"], ["h"], "same"), op("MatMul", ["h", "v"], ["y"], "same")]
    found = count(model(nodes, [X], stored=[bare("w", 3, 4), bare("v", 4, 5)]))
    assert found.found == (2 * 2 * 3 * 4 + 2 * 2 * 4 * 5, 12 + 20, 4 * 32)
