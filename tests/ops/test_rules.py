"""Every rule has a row; every row costs what was worked out by hand; laws over all rows."""

from __future__ import annotations

from itertools import chain

import onnx.defs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.errors import ShapeError
from graphcost.ir import OpCost
from graphcost.ops import FAMILIES, RULES, OpClass, backward_cost, find_rule, forward_cost, op_class_of

from . import (
    rows_attention,
    rows_conv,
    rows_elementwise,
    rows_layout,
    rows_matmul,
    rows_norm,
    rows_recurrent,
    rows_reduce,
)
from .build import MS, BackRow, Row, i64, op

TABLES = (
    rows_attention,
    rows_conv,
    rows_elementwise,
    rows_layout,
    rows_matmul,
    rows_norm,
    rows_recurrent,
    rows_reduce,
)
ROWS = [pytest.param(row, id=key) for table in TABLES for key, row in table.ROWS.items()]
BACK_ROWS = [pytest.param(row, id=key) for table in TABLES for key, row in table.BACK.items()]
NODES = [row.node for row in chain.from_iterable(table.ROWS.values() for table in TABLES)]

UNKNOWN = {
    "If": "control flow: frontends expand it",
    "Loop": "control flow: frontends expand it",
    "Scan": "control flow: frontends expand it",
    "SequenceMap": "control flow: frontends expand it",
    "ImageDecoder": "decodes a compressed stream, on the host",
    "RegexFullMatch": "strings, on the host",
    "StringConcat": "strings, on the host",
    "StringNormalizer": "strings, on the host",
    "StringSplit": "strings, on the host",
    "TfIdfVectorizer": "n-gram search, whose work depends on the data",
}


@pytest.mark.parametrize("row", ROWS)
def test_forward(row: Row) -> None:
    expected = OpCost(row.matmul_flops, row.elementwise_flops, row.read_bytes, row.write_bytes)
    assert forward_cost(row.node) == expected


@pytest.mark.parametrize("row", BACK_ROWS)
def test_backward(row: BackRow) -> None:
    expected = OpCost(row.matmul_flops, row.elementwise_flops, row.read_bytes, row.write_bytes)
    assert backward_cost(row.node, row.wrt) == expected


def test_every_rule_has_a_row() -> None:
    assert set(RULES) - {(node.domain, node.op_type) for node in NODES} == set()


def test_every_family_registers_rules() -> None:
    modules = {entry.forward.__module__ for entry in RULES.values() if not entry.is_free}
    assert modules == {family.__name__ for family in FAMILIES}


def test_every_standard_operator_is_counted_free_or_listed() -> None:
    standard = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}
    assert {name for name in standard if ("", name) not in RULES} == set(UNKNOWN)


def test_rules_name_tensors_to_save() -> None:
    for entry in RULES.values():
        for name in entry.saves:
            what, _, needed = name.partition("?")
            assert what in {"inputs", "mask", "indices"} or what.removeprefix("in").removeprefix("out").isdigit()
            assert needed == "" or needed.isdigit()


@pytest.mark.parametrize("row", ROWS)
def test_a_gradient_nobody_needs_costs_nothing(row: Row) -> None:
    assert backward_cost(row.node, frozenset()) == OpCost()


@given(st.sampled_from(NODES), st.sets(st.integers(0, 8)))
def test_costs_are_counts(node, wrt) -> None:
    for cost in (forward_cost(node), backward_cost(node, wrt)):
        assert cost is not None
        for part in (cost.matmul_flops, cost.elementwise_flops, cost.read_bytes, cost.write_bytes):
            assert type(part) is int
            assert part >= 0


@given(st.sampled_from(NODES), st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_more_gradients_cost_no_less(node, some, more) -> None:
    fewer, all_of_them = backward_cost(node, some), backward_cost(node, some | more)
    assert fewer.matmul_flops <= all_of_them.matmul_flops
    assert fewer.write_bytes <= all_of_them.write_bytes


@given(st.sampled_from(NODES))
def test_two_gradients_cost_two_products(node) -> None:
    gradients = max(2, len(node.inputs) if node.op_type == "Einsum" else 0)
    everything = backward_cost(node, range(len(node.inputs)))
    assert everything.matmul_flops <= gradients * forward_cost(node).matmul_flops


@given(st.sampled_from(NODES))
def test_gradients_are_written_once(node) -> None:
    """No gradient is larger than its tensor; a fused activation writes dY anew."""
    everything = backward_cost(node, range(len(node.inputs)))
    floats = sum(spec.size_bytes for spec in node.inputs if spec is not None and spec.is_float)
    assert everything.write_bytes <= floats + (
        node.out.size_bytes if "activation" in node.attrs or "Gelu" in node.op_type else 0
    )


def test_absent_inputs_have_no_gradient() -> None:
    assert backward_cost(op("Clip", [(4,), None, None], (4,)), {1, 2, 7}) == OpCost()


def test_three_answers() -> None:
    assert forward_cost(op("Nonsense", [(4,)], (4,))) is None
    assert backward_cost(op("Nonsense", [(4,)], (4,)), {0}) is None
    assert forward_cost(op("Reshape", [(4,), i64(1)], (4,))) == OpCost()
    assert find_rule(op("Reshape", [], (4,))).source == "a view: no data moves"
    assert forward_cost(op("MatMul", [(4, 5)], (4, 6))) is None  # the second operand's shape is not known
    assert forward_cost(op("Relu", [(4,)], [None])) is None
    assert forward_cost(op("MaxPool", [(1, 1, 4)], (1, 1, 2))) is None  # no kernel_shape
    assert op_class_of(op("Nonsense", [(4,)], (4,))) is None


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (op("MatMul", [(4, 5), (7, 6)], (4, 6)), "inner sizes differ, 5 != 7"),
        (op("MatMul", [(2, 4, 5), (3, 5, 6)], (3, 4, 6)), r"sizes \[2, 3\] do not broadcast"),
        (op("Gemm", [(4, 5, 1), (5, 6)], (4, 6)), "A has 3 axes, but needs 2"),
        (op("Conv", [(1, 3, 8, 8), (4, 2, 3, 3)], (1, 4, 6, 6)), r"weight must be \[M, 3/1, ...\]"),
        (op("ConvTranspose", [(1, 3, 8, 8), (4, 2, 3, 3)], (1, 2, 9, 9)), r"weight must be \[3, M/group"),
        (op("Einsum", [(2, 3), (4, 5)], (2, 5), {"equation": "ij,jk->ik"}), "label 'j' is both 3 and 4"),
        (op("Einsum", [(2, 3)], (2,), {"equation": "ij,jk->ik"}), "has 2 operands, not 1"),
        (op("Attention", [(2, 3, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)], (2, 3, 5, 8)), "3 query heads are not"),
        (
            op(
                "Attention",
                [(2, 5, 32), (2, 7, 16), (2, 7, 16)],
                (2, 5, 32),
                {"q_num_heads": 5, "kv_num_heads": 2},
            ),
            "Q's hidden size 32 does not divide into 5 equal parts",
        ),
        (
            op("Attention", [(2, 5, 12), (13, 36)], (2, 5, 12), {"num_heads": 3}, MS),
            "must have 12 rows, not 13",
        ),
        (op("LSTM", [(5, 3, 4), (1, 24, 5), (1, 24, 6)], (5, 1, 3, 6)), r"W must be \[D, 4\*H, 4\]"),
        (op("BatchNormalization", [(2, 3, 4), (5,)], (2, 3, 4)), "scale has 5 elements, but the input has 3"),
        (
            op("MatMulNBits", [(2, 60), (3,)], (2, 3), {"K": 64, "N": 3}, MS),
            "last axis must be K = 64, not 60",
        ),
        (op("AveragePool", [(1, 2, 8, 8)], (1, 2, 4, 4), {"kernel_shape": [2]}), "kernel_shape has 1 axes"),
        (op("SoftmaxCrossEntropyLoss", [(6, 10), i64(5)], ()), r"labels must have shape \[6\]"),
    ],
)
def test_contradicting_shapes_are_errors(node, message) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        forward_cost(node)
    assert "\n" not in str(caught.value)


def test_the_message_of_a_contradiction() -> None:
    with pytest.raises(ShapeError) as caught:
        forward_cost(op("MatMul", [(4, 5), (7, 6)], (4, 6)))
    assert str(caught.value) == "matmul (MatMul): inner sizes differ, 5 != 7, for inputs [4, 5], [7, 6]"


@pytest.mark.parametrize(
    ("node", "family"),
    [
        (rows_conv.ROWS["conv"].node, OpClass.CONV),
        (rows_conv.ROWS["conv-grouped"].node, OpClass.CONV),
        (rows_conv.ROWS["conv-depthwise"].node, OpClass.DEPTHWISE),
        (rows_conv.ROWS["conv-transpose-grouped"].node, OpClass.CONV),
        (op("ConvTranspose", [(1, 4, 4), (4, 1, 2)], (1, 4, 8), {"group": 4}), OpClass.DEPTHWISE),
        (rows_conv.ROWS["causal-conv"].node, OpClass.DEPTHWISE),
        (rows_matmul.ROWS["einsum"].node, OpClass.MATMUL),
        (rows_matmul.ROWS["einsum-outer"].node, OpClass.POINTWISE),
        (rows_matmul.ROWS["einsum-trace"].node, OpClass.REDUCE),
        (rows_matmul.ROWS["einsum-transpose"].node, OpClass.COPY),
        (op("Conv", [(1, 4, 4)], (1, 4, 4), {"group": 4}), OpClass.CONV),  # weight not known
    ],
)
def test_op_class(node, family) -> None:
    assert op_class_of(node) is family
