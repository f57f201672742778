"""Reading a node: attributes with their types, broadcasting, and the error for contradicting shapes."""

from __future__ import annotations

from collections.abc import Sequence

from graphcost.errors import ShapeError
from graphcost.ir import OpNode, TensorSpec

Shape = tuple[int, ...]


def shape_error(node: OpNode, fact: str) -> ShapeError:
    """The error for ``node`` whose shapes contradict each other; ``fact`` says how and what would fit."""
    shapes = ", ".join("-" if spec is None else str(list(spec.shape)) for spec in node.inputs)
    return ShapeError(f"{node.name} ({node.kind}): {fact}, for inputs {shapes}")


def attr_int(node: OpNode, name: str, default: int | None = None) -> int:
    """An integer attribute; without a default, raises ``LookupError`` where it is absent."""
    value = node.attrs.get(name, default)
    if value is None:
        raise LookupError(f"{node.name} ({node.kind}): attribute {name!r} is missing")
    if not hasattr(value, "__int__"):
        raise shape_error(node, f"attribute {name!r} is {value!r}, but must be a number")
    return int(value)


def attr_ints(node: OpNode, name: str) -> Shape | None:
    """A list attribute as a tuple, or None where it is absent."""
    value = node.attrs.get(name)
    if value is None:
        return None
    if not isinstance(value, (tuple, list)) or not all(hasattr(item, "__int__") for item in value):
        raise shape_error(node, f"attribute {name!r} is {value!r}, but must be a list of numbers")
    return tuple(int(item) for item in value)


def attr_str(node: OpNode, name: str, default: str = "") -> str:
    """A text attribute (bytes in the file format are UTF-8)."""
    value = node.attrs.get(name, default)
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def rank_at_least(node: OpNode, spec: TensorSpec, rank: int, what: str) -> Shape:
    """``spec``'s shape; raises ``ShapeError`` where it has fewer than ``rank`` axes."""
    if len(spec.shape) < rank:
        raise shape_error(node, f"{what} has {len(spec.shape)} axes, but needs {rank} or more")
    return spec.shape


def rank_exactly(node: OpNode, spec: TensorSpec, rank: int, what: str) -> Shape:
    """``spec``'s shape; raises ``ShapeError`` where it does not have ``rank`` axes."""
    if len(spec.shape) != rank:
        raise shape_error(node, f"{what} has {len(spec.shape)} axes, but needs {rank}")
    return spec.shape


def split_evenly(node: OpNode, total: int, parts: int, what: str) -> int:
    """``total / parts``; raises ``ShapeError`` where it leaves a remainder."""
    if parts <= 0 or total % parts:
        raise shape_error(node, f"{what} {total} does not divide into {parts} equal parts")
    return total // parts


def broadcast(node: OpNode, shapes: Sequence[Shape]) -> Shape:
    """The common shape of ``shapes`` under numpy's rule; raises ``ShapeError`` where there is none."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    common = []
    for sizes in zip(*padded, strict=True):
        real = {size for size in sizes if size != 1}
        if len(real) > 1:
            raise shape_error(node, f"sizes {sorted(real)} do not broadcast; they must be equal or 1")
        common.append(real.pop() if real else 1)
    return tuple(common)
