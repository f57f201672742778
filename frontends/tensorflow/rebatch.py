"""A graph fixed at one batch, run at another: sizes that stand in its constants follow, or it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from graphcost.frontends.tensorflow.body import Body, NodeDef
from graphcost.frontends.tensorflow.values import Value

if TYPE_CHECKING:
    from graphcost.frontends.tensorflow.walk import Walk

# Operators that are given their result's sizes: which input they are.
_TARGETS = {
    "Reshape": 1, "BroadcastTo": 1, "Tile": 1, "Fill": 0, "Conv2DBackpropInput": 0, "Conv3DBackpropInputV2": 0,
    "DepthwiseConv2dNativeBackpropInput": 0, "RandomUniform": 0, "RandomStandardNormal": 0, "TruncatedNormal": 0,
    "StatelessRandomUniform": 0, "StatelessRandomUniformV2": 0, "StatelessRandomNormal": 0,
    "StatelessRandomNormalV2": 0,
}  # fmt: skip

_SHAPES = frozenset({"Shape", "ShapeN", "Size", "VariableShape"})


def adapted(walk: Walk, node: NodeDef, inputs: list[Value], body: Body) -> list[Value]:
    """``inputs`` with a literal target size that holds the old batch changed to hold the new one."""
    at = _TARGETS.get(node.op)
    if walk.rebatched is None or at is None or len(inputs) <= at:
        return inputs
    target = inputs[at]
    sizes = target.ints
    if node.op == "Reshape" and inputs[0].constant:
        return inputs  # weights hold no batch
    data = inputs[0].spec.shape if at and inputs[0].spec is not None else None
    axis = None if not sizes else _batch_axis(node.op, data, sizes, *walk.rebatched)
    if not sizes or axis is None or target.data is None or not _literal(body, node.input[at], axis):
        return inputs
    old, new = walk.rebatched
    changed = target.data.copy().reshape(-1)
    changed[axis] = sizes[axis] // old * new
    following = walk.known(target.name, target.dtype, changed.reshape(target.data.shape))
    return [*inputs[:at], replace(following, leaves=target.leaves), *inputs[at + 1 :]]


def _batch_axis(op_type: str, data: Sequence[int] | None, sizes: Sequence[int], old: int, new: int) -> int | None:
    """Which of the target ``sizes`` holds the old batch, for ``data`` that has the new one; None where none must.

    A reshape keeps the batch, merges it with axes beside it, or splits it off again.
    """
    if op_type == "Tile":  # one row, repeated for every sample
        return 0 if data is not None and data[:1] == (1,) and sizes[0] == old != 1 else None
    if op_type != "Reshape":
        return 0 if len(sizes) > 1 and sizes[0] == old else None
    if not data or prod(sizes) == prod(data):
        return None
    for merged in range(1, len(data) + 1):
        if new in data[:merged] and sizes[0] * new == old * prod(data[:merged]):
            return 0
    for split in range(1, len(sizes) + 1):
        if old in sizes[:split] and prod(sizes[:split]) * new == old * data[0]:
            return list(sizes).index(old)
    return None


def initial_state(walk: Walk, value: Value) -> Value:
    """A loop variable that starts from a constant ``[old batch, *]`` (a state of zeros) starts from the new batch."""
    if walk.rebatched is None or not value.constant or value.spec is None or len(value.spec.shape) < 2:
        return value
    old, new = walk.rebatched
    if value.spec.shape[0] != old:
        return value
    return walk.fresh(value.name, value.dtype, (new, *value.spec.shape[1:]), constant=True, leaves=value.leaves)


def _literal(body: Body, text: str, axis: int) -> bool:
    """Whether entry ``axis`` of a size follows from numbers in the graph alone, not from the shape of a tensor."""
    start = body.nodes.get(body.source(text).node)
    if start is not None and start.op == "Pack":
        text = start.input[axis]
    seen: set[str] = set()
    stack = [body.ref(text)]
    while stack:
        name = stack.pop().node
        node = body.nodes.get(name)
        if node is None or node.op in _SHAPES:
            return False  # an argument of a function, or what follows the data by itself
        if name not in seen:
            seen.add(name)
            needed = body.inputs(node)
            if not needed and node.op not in ("Const", "HostConst"):
                return False
            stack.extend(needed)
    return True
