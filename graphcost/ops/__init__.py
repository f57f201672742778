"""Operator rules: what every operator asks of a device, and what it asks going backward.

>>> from graphcost.ir import OpNode, TensorSpec
>>> matrix = TensorSpec((2, 3)), TensorSpec((3, 4))
>>> forward_cost(OpNode("mm", "MatMul", matrix, (TensorSpec((2, 4)),)))
OpCost(matmul_flops=48, elementwise_flops=0, read_bytes=72, write_bytes=32)
"""

from __future__ import annotations

from collections.abc import Iterable

from graphcost.ir import OpCost, OpNode
from graphcost.ops import conv, einsum
from graphcost.ops._backward import pointwise_backward
from graphcost.ops._causal import causal_share
from graphcost.ops._rule import RULES, OpClass, Rule, find_rule, free, rule, traffic
from graphcost.ops._shapes import shape_error
from graphcost.registry import import_members

__all__ = [
    "RULES",
    "OpClass",
    "Rule",
    "backward_cost",
    "causal_share",
    "find_rule",
    "forward_cost",
    "free",
    "op_class_of",
    "pointwise_backward",
    "rule",
    "traffic",
]

FAMILIES = import_members(__name__, __path__)
"""The modules whose import fills :data:`RULES`."""

_LIST_OPS = frozenset({"ConcatFromSequence", "SplitToSequence"})
"""Operators on lists of tensors, whose value has no single shape."""


def forward_cost(node: OpNode) -> OpCost | None:
    """Cost of one execution of ``node`` (not times ``node.repeat``), or None: unknown.

    Unknown is an operator without a rule, or one whose rule lacks a shape or a value.
    Raises ``ShapeError`` where the node's shapes contradict each other.
    """
    found = find_rule(node)
    if found is None:
        return None
    if found.is_free:
        return OpCost()
    if not _shapes_known(node):
        return None
    try:
        return found.forward(node)
    except LookupError as error:
        _raise_if_contradiction(node, error)
        return None


def backward_cost(node: OpNode, wrt: Iterable[int]) -> OpCost | None:
    """Cost of the gradients of the inputs ``wrt`` of one execution, or None: unknown.

    Nothing flows through integers: without a floating-point output, or for inputs that
    are absent or not floating point, the gradient costs nothing.
    Raises ``ShapeError`` where the node's shapes contradict each other.
    """
    found = find_rule(node)
    if found is None:
        return None
    needed = frozenset(i for i in wrt if (spec := node.spec(i)) is not None and spec.is_float)
    reached = any(spec is None or spec.is_float for spec in node.outputs)
    if found.is_free or not needed or not reached:
        return OpCost()
    if not _shapes_known(node):
        return None
    try:
        return found.backward(node, needed)
    except LookupError as error:
        _raise_if_contradiction(node, error)
        return None


def op_class_of(node: OpNode) -> OpClass | None:
    """The family whose efficiency ``node`` shares, or None: unknown.

    Refines the rule's class: a convolution that gives each group one input channel is
    depthwise, and an Einsum that contracts nothing is pointwise (or, of one operand, a
    reduction or a copy).
    """
    found = find_rule(node)
    if found is None:
        return None
    try:
        if found.op_class is OpClass.CONV and conv.is_depthwise(node):
            return OpClass.DEPTHWISE
        if node.op_type == "Einsum" and found.op_class is OpClass.MATMUL:
            return _einsum_class(node)
    except LookupError:
        return found.op_class
    return found.op_class


def _einsum_class(node: OpNode) -> OpClass:
    contraction, elementwise_flops = einsum.einsum_flops(einsum.parse(node))
    if contraction:
        return OpClass.MATMUL
    if len(node.inputs) > 1:
        return OpClass.POINTWISE
    return OpClass.REDUCE if elementwise_flops else OpClass.COPY


def _shapes_known(node: OpNode) -> bool:
    """Whether every tensor that is named has a shape: bytes need them all."""
    if node.op_type in _LIST_OPS:
        return True
    named = zip((*node.input_names, *node.output_names), (*node.inputs, *node.outputs), strict=False)
    aligned = len(node.input_names) == len(node.inputs) and len(node.output_names) == len(node.outputs)
    return not aligned or all(spec is not None for name, spec in named if name)


def _raise_if_contradiction(node: OpNode, error: LookupError) -> None:
    """A missing shape or value is unknown; an axis beyond a shape's rank contradicts the rule."""
    if isinstance(error, IndexError):
        raise shape_error(node, "a tensor has fewer axes than the operator needs") from error
