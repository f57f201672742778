"""Einsum: labels to FLOPs.

Operands are contracted in pairs from left to right. A label that one operand alone
holds and nothing later needs is summed out before (one FLOP per element); a pair that
then still sums over a shared label is a contraction, one MAC per point of the union of
its labels; a pair that sums nothing is an elementwise product.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._conventions import POINTWISE, REDUCTION
from graphcost.ops._rule import OpClass, rule, traffic
from graphcost.ops._shapes import Shape, attr_str, shape_error

_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Terms:
    """A parsed equation: the labels of every operand and of the result, and each label's size."""

    operands: tuple[frozenset[str], ...]
    result: frozenset[str]
    sizes: dict[str, int]

    def points(self, labels: frozenset[str]) -> int:
        """How many index tuples ``labels`` span."""
        return prod(self.sizes[label] for label in labels)


def parse(node: OpNode) -> Terms:
    """Labels and sizes of ``node``'s equation; the ellipsis' axes are labelled ``.0`` from the right.

    Raises ``ShapeError`` where the equation does not fit the operands.
    """
    equation = attr_str(node, "equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(node.inputs):
        raise shape_error(node, f"equation {equation!r} has {len(texts)} operands, not {len(node.inputs)}")
    sizes: dict[str, int] = {}
    named = [_labels(node, text, node.require(i).shape, sizes) for i, text in enumerate(texts)]
    if arrow:
        dots = frozenset(label for label in sizes if label.startswith("."))
        result = frozenset(right.replace(_ELLIPSIS, "")) | (dots if _ELLIPSIS in right else frozenset())
    else:  # implicit result: labels that occur once, and the ellipsis
        flat = "".join(texts).replace(_ELLIPSIS, "")
        result = frozenset(label for label in sizes if label.startswith(".") or flat.count(label) == 1)
    if unknown := result - sizes.keys():
        raise shape_error(node, f"equation {equation!r} gives {sorted(unknown)} that no operand has")
    return Terms(tuple(named), result, sizes)


def _labels(node: OpNode, text: str, shape: Shape, sizes: dict[str, int]) -> frozenset[str]:
    head, dots, tail = text.partition(_ELLIPSIS)
    spare = len(shape) - len(head) - len(tail)
    if spare < 0 or (spare and not dots):
        raise shape_error(node, f"operand {text!r} has {len(head) + len(tail)} labels for {len(shape)} axes")
    labels = [*head, *(f".{spare - 1 - i}" for i in range(spare)), *tail]
    for label, size in zip(labels, shape, strict=True):
        known = sizes.get(label, 1)
        if 1 not in (known, size) and known != size:
            raise shape_error(node, f"label {label!r} is both {known} and {size}")
        sizes[label] = size if known == 1 else known
    return frozenset(labels)


def einsum_flops(terms: Terms) -> tuple[int, int]:
    """(matmul FLOPs, elementwise FLOPs) of contracting ``terms`` pairwise from the left."""
    contraction = elementwise = 0
    current, *rest = terms.operands
    if not rest:
        return 0, REDUCTION * terms.points(current) if current - terms.result else 0
    for position, other in enumerate(rest):
        later = terms.result.union(*rest[position + 1 :])
        pair = []
        for mine, partner in ((current, other), (other, current)):
            kept = mine & (partner | later)
            elementwise += REDUCTION * terms.points(mine) if mine != kept else 0
            pair.append(kept)
        union = pair[0] | pair[1]
        if union - later:
            contraction += MAC_FLOPS * terms.points(union)
        else:
            elementwise += POINTWISE * terms.points(union)
        current = union & later
    return contraction, elementwise


def _backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    contraction, elementwise = einsum_flops(parse(node))
    cost = OpCost()
    for index in sorted(wrt):
        others = sum(node.require(i).size_bytes for i in range(len(node.inputs)) if i != index)
        read = node.out.size_bytes + others
        cost += OpCost(contraction, elementwise, read, node.require(index).size_bytes)
    return cost


@rule("Einsum", op_class=OpClass.MATMUL, backward=_backward, saves=("inputs",))
def einsum(node: OpNode) -> OpCost:
    """Any contraction in index notation; intermediates of three and more operands cost no bytes.

    Source: ONNX Einsum-12 (numpy.einsum semantics, ellipsis broadcasts).
    """
    contraction, elementwise = einsum_flops(parse(node))
    return traffic(node, matmul_flops=contraction, elementwise_flops=elementwise)
