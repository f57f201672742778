"""Tables cut into parts (TF 1 partitioners, parameter servers): rows are sorted by part, looked up, put in order.

How many rows fall into a part depends on data. assumed: evenly many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphcost.frontends.tensorflow.body import NodeDef
from graphcost.frontends.tensorflow.emit import Op
from graphcost.frontends.tensorflow.values import Array, Value
from graphcost.frontends.tensorflow.walk import Scope, Walk, opens


@opens("DynamicPartition")
def partition(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Data ``[*p, *row]``, part numbers ``[*p]``: ``n`` tensors ``[about p / n, *row]``, a copy of the data."""
    count, name = int(node.attr["num_partitions"].i), f"{scope.path}{node.name}"
    data, parts = inputs[0].spec, inputs[1].spec
    if data is None or parts is None or count < 1:
        return walk.operator(node, inputs, scope)
    each, rest = divmod(parts.numel, count)
    row = data.shape[len(parts.shape) :]
    results = [walk.fresh(f"{name}:{i}", inputs[0].dtype, (each + (i < rest), *row)) for i in range(count)]
    walk.note("how rows spread over the parts of a DynamicPartition depends on data; evenly is assumed")
    Op(node, tuple(inputs), tuple(results), scope.path, scope.repeat, walk.nodes).emit("Split", inputs[:1], axis=0)
    return results


@opens("DynamicStitch", "ParallelDynamicStitch")
def stitch(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """``n`` tensors of positions, then ``n`` of rows: all rows in one tensor, at their positions."""
    count = int(node.attr["N"].i)
    positions, rows = inputs[:count], inputs[count : 2 * count]
    name, first, where = f"{scope.path}{node.name}:0", rows[0].spec, positions[0].spec
    known = _stitched([value.data for value in positions], [value.data for value in rows])
    if known is not None:
        return [walk.known(name, rows[0].dtype, known)]
    sizes = [value.spec.numel for value in positions if value.spec is not None]
    if first is None or where is None or len(sizes) < count:
        return walk.operator(node, inputs, scope)
    result = walk.fresh(name, rows[0].dtype, (sum(sizes), *first.shape[len(where.shape) :]))
    Op(node, tuple(inputs), (result,), scope.path, scope.repeat, walk.nodes).emit("Concat", rows, axis=0)
    return [result]


def _stitched(positions: Sequence[Array | None], rows: Sequence[Array | None]) -> Array | None:
    """The result where everything is known (sizes, in the gradients of reductions); None elsewhere."""
    pairs = [(at, data) for at, data in zip(positions, rows, strict=True) if at is not None and data is not None]
    if len(pairs) < len(positions) or not pairs or any(at.size and int(at.min()) < 0 for at, _ in pairs):
        return None
    length = 1 + max((int(at.max()) for at, _ in pairs if at.size), default=-1)
    if length > sum(at.size for at, _ in pairs):
        return None
    at, data = pairs[0]
    result = np.zeros((length, *data.shape[at.ndim :]), data.dtype)
    for at, data in pairs:
        result[at.reshape(-1)] = data.reshape(-1, *result.shape[1:])
    return result
