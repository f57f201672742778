"""Backward rules that many operators share.

Each takes ``wrt``, the inputs whose gradient is needed, and counts per needed input:
the output gradient is read, what was kept is read, the input's gradient is written.
Gradients have the shape and dtype of their tensor.
"""

from __future__ import annotations

from collections.abc import Callable

from graphcost.ir import OpCost, OpNode, TensorSpec
from graphcost.ops._conventions import REDUCTION, pointwise_flops
from graphcost.ops._rule import BackwardRule, read_bytes

FlopsOf = Callable[[OpNode], int]


def no_gradient(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """Comparisons, indices, integers, generators: nothing flows back."""
    return OpCost()


def saved_bytes(node: OpNode, saves: tuple[str, ...]) -> int:
    """Bytes of the tensors named by ``saves`` (see :mod:`graphcost.ops._rule`)."""
    return sum(_saved_one(node, name) for name in saves)


def _saved_one(node: OpNode, token: str) -> int:
    name = token.partition("?")[0]
    if name == "indices":
        return 8 * node.out.numel
    if name == "inputs":
        return read_bytes(*node.inputs)
    if name == "mask":
        return node.out.numel
    where, index = (node.inputs, int(name[2:])) if name.startswith("in") else (node.outputs, int(name[3:]))
    return read_bytes(where[index]) if index < len(where) else 0


def broadcast_sum_flops(spec: TensorSpec, out: TensorSpec) -> int:
    """FLOPs of summing an output-sized gradient down to a broadcast input."""
    return REDUCTION * out.numel if spec.numel < out.numel else 0


def pointwise_backward(saves: tuple[str, ...] = (), flops_per_element: int | None = None) -> BackwardRule:
    """One forward's FLOPs per needed input; reads dY and what was kept, writes dX."""

    def backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
        out, kept_bytes, cost = node.out, saved_bytes(node, saves), OpCost()
        each = pointwise_flops(node.op_type) if flops_per_element is None else flops_per_element
        for index in sorted(wrt):
            spec = node.require(index)
            flops = each * out.numel + broadcast_sum_flops(spec, out)
            cost += OpCost(0, flops, out.size_bytes + kept_bytes, spec.size_bytes)
        return cost

    return backward


def sum_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """``Y = A + B``: dY itself is the gradient of an operand of its size; it is summed down to a broadcast one."""
    return added_backward(node, wrt)


def difference_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """``Y = A - B``: as a sum, and B's gradient is negated."""
    cost = added_backward(node, wrt)
    if 1 in wrt:
        spec = node.require(1)
        cost += OpCost(0, spec.numel, spec.size_bytes, spec.size_bytes)
    return cost


def product_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """``Y = A * B``: each gradient reads dY and the other factor."""
    out, cost = node.out, OpCost()
    for index in sorted(wrt):
        spec = node.require(index)
        others_bytes = read_bytes(*node.inputs) - spec.size_bytes
        flops = out.numel + broadcast_sum_flops(spec, out)
        cost += OpCost(0, flops, out.size_bytes + others_bytes, spec.size_bytes)
    return cost


def copy_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """A copy back: the part of dY that came from the input is read, dX is written."""
    grad_bytes, cost = read_bytes(*node.outputs), OpCost()
    for index in sorted(wrt):
        size_bytes = node.require(index).size_bytes
        cost += OpCost(0, 0, min(grad_bytes, size_bytes), size_bytes)
    return cost


def spread_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """Elements that were repeated or blended: all of dY is summed into dX, one FLOP each."""
    cost = OpCost()
    for index in sorted(wrt):
        spec = node.require(index)
        cost += OpCost(0, REDUCTION * node.out.numel, node.out.size_bytes, spec.size_bytes)
    return cost


def contraction_backward(
    flops_of: FlopsOf,
    lhs: int = 0,
    rhs: int = 1,
    adds: tuple[int, ...] = (),
    activation: FlopsOf | None = None,
) -> BackwardRule:
    """One forward's contraction per needed operand; it reads dY and the other operand.

    ``adds`` are inputs added to the product (bias, residual): a reduction of dY.
    ``activation`` gives the FLOPs of a fused activation, whose gradient comes first:
    it reads dY and Y and writes dY anew.
    """

    def backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
        out, flops, cost = node.out, flops_of(node), OpCost()
        if activation is not None and wrt and (extra := activation(node)):
            cost += OpCost(0, extra, 2 * out.size_bytes, out.size_bytes)
        for needed, other in ((lhs, rhs), (rhs, lhs)):
            if needed in wrt:
                read = out.size_bytes + node.require(other).size_bytes
                cost += OpCost(flops, 0, read, node.require(needed).size_bytes)
        return cost + added_backward(node, wrt & frozenset(adds))

    return backward


def added_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """Gradients of inputs that were added to the output: dY itself, or its sum down to their shape."""
    out, cost = node.out, OpCost()
    for index in sorted(wrt):
        spec = node.require(index)
        if spec.numel < out.numel:
            cost += OpCost(0, broadcast_sum_flops(spec, out), out.size_bytes, spec.size_bytes)
    return cost
