"""Reductions, scans, sorting, and the softmax family."""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._backward import no_gradient, pointwise_backward, saved_bytes
from graphcost.ops._conventions import REDUCTION, SOFTMAX, SOFTMAX_BACKWARD
from graphcost.ops._rule import BackwardRule, OpClass, rule, traffic
from graphcost.ops._shapes import rank_at_least, shape_error

MICROSOFT = "com.microsoft"


def _reduce_backward(*saves: str) -> BackwardRule:
    """dY spread over the input: reads dY and what was kept, writes dX, one FLOP per input element."""

    def backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
        if 0 not in wrt:
            return OpCost()
        x = node.require(0)
        return OpCost(0, x.numel, node.out.size_bytes + saved_bytes(node, saves), x.size_bytes)

    return backward


def reduction(node: OpNode) -> OpCost:
    """Input of any shape, reduced or scanned: one FLOP per input element.

    Source: ONNX Reduce* operators (opset 18 and 20), ArgMax-13, CumSum-14, TopK-24.
    """
    return traffic(node, elementwise_flops=REDUCTION * node.require(0).numel)


def _register(*op_types: str, saves: tuple[str, ...] = (), domain: str = "") -> None:
    rule(*op_types, op_class=OpClass.REDUCE, backward=_reduce_backward(*saves), saves=saves, domain=domain)(reduction)


_register("ReduceSum", "ReduceMean", "CumSum", "TopK")
_register("ReduceL1", "ReduceSumSquare", saves=("in0",))
_register(
    "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "CumProd",
    saves=("in0", "out0"),
)  # fmt: skip
rule("ArgMax", "ArgMin", "Hardmax", "NonZero", op_class=OpClass.REDUCE, backward=no_gradient)(reduction)
rule("ReduceSumInteger", op_class=OpClass.REDUCE, backward=no_gradient, domain=MICROSOFT)(reduction)


@rule("NonMaxSuppression", op_class=OpClass.REDUCE, backward=no_gradient)
def non_max_suppression(node: OpNode) -> OpCost:
    """Boxes ``[B, N, 4]``, scores ``[B, C, N]``: one FLOP per score.

    assumed: the overlap tests, whose number depends on the data, are not counted.
    Source: ONNX NonMaxSuppression-11.
    """
    return traffic(node, elementwise_flops=REDUCTION * node.require(1).numel)


def _softmax_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    y, cost = node.out, OpCost()
    for index in sorted(wrt):
        flops = SOFTMAX_BACKWARD * y.numel if index == 0 else y.numel
        cost += OpCost(0, flops, 2 * y.size_bytes, node.require(index).size_bytes)
    return cost


@rule("Softmax", "LogSoftmax", op_class=OpClass.SOFTMAX, backward=_softmax_backward, saves=("out0",))
def softmax(node: OpNode) -> OpCost:
    """Input of any shape, normalised along one axis; backward reads y and dy.

    Source: ONNX Softmax-13, LogSoftmax-13.
    """
    return traffic(node, elementwise_flops=SOFTMAX * node.require(0).numel)


@rule("BiasSoftmax", domain=MICROSOFT, op_class=OpClass.SOFTMAX, backward=_softmax_backward, saves=("out0",))
def bias_softmax(node: OpNode) -> OpCost:
    """``softmax(data + bias)``.

    Source: com.microsoft.BiasSoftmax (ONNX Runtime contrib operators).
    """
    return traffic(node, elementwise_flops=(SOFTMAX + 1) * node.require(0).numel)


def lu_flops(n: int) -> int:
    """FLOPs of factorising an n x n matrix: sum of j + 2 j^2 for j below n (divisions, updates).

    >>> lu_flops(2)  # one division, one multiply-subtract
    3
    """
    return n * (n - 1) * (4 * n + 1) // 6


@rule("Det", op_class=OpClass.REDUCE, backward=pointwise_backward(("inputs",)), saves=("in0", "out0"))
def determinant(node: OpNode) -> OpCost:
    """``[*, M, M] -> [*]`` by LU factorisation and the product of its diagonal.

    Source: ONNX Det-22; Golub and Van Loan, Matrix Computations, section 3.2.
    """
    *_, rows, columns = rank_at_least(node, node.require(0), 2, "the input")
    if rows != columns:
        raise shape_error(node, f"matrices must be square, not {rows} x {columns}")
    return traffic(node, elementwise_flops=node.out.numel * (lu_flops(rows) + max(0, rows - 1)))
