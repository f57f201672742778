"""Gathers and scatters: only the rows touched move, never the whole table."""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._backward import no_gradient
from graphcost.ops._conventions import REDUCTION
from graphcost.ops._rule import OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import attr_int, attr_str, shape_error

MICROSOFT = "com.microsoft"


def _gather_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """Reads dY and the indices, adds into the touched rows, which are written."""
    if 0 not in wrt:
        return OpCost()
    grad = node.out
    return OpCost(0, REDUCTION * grad.numel, read_bytes(grad, node.spec(1)), grad.size_bytes)


@rule(
    "Gather",
    "GatherElements",
    "GatherND",
    op_class=OpClass.GATHER,
    backward=_gather_backward,
    saves=("in1",),
)
@rule(
    "GatherND",
    "TorchEmbedding",
    domain=MICROSOFT,
    op_class=OpClass.GATHER,
    backward=_gather_backward,
    saves=("in1",),
)
def gather(node: OpNode) -> OpCost:
    """Data of any shape, indices at input 1: reads the rows it returns and the indices.

    Source: ONNX Gather-13, GatherElements-13, GatherND-13.
    """
    touched, data = node.out.size_bytes, node.require(0)
    rows_bytes = touched if data.numel else 0
    return OpCost(0, 0, rows_bytes + read_bytes(node.spec(1)), touched)


@rule("GatherBlockQuantized", domain=MICROSOFT, op_class=OpClass.GATHER, backward=no_gradient)
def gather_block_quantized(node: OpNode) -> OpCost:
    """Quantised table, indices, scales, zero points: touched rows at their packed size, one FLOP to scale.

    The share of the table that the output takes is rounded up to whole bytes.
    Source: com.microsoft.GatherBlockQuantized (ONNX Runtime contrib operators).
    """
    data, out = node.require(0), node.out
    bits = attr_int(node, "bits", 4)
    if bits not in (1, 2, 4, 8):
        raise shape_error(node, f"attribute 'bits' is {bits}, but must be 1, 2, 4 or 8")
    packing = 8 // bits if data.dtype == "uint8" else 1
    table_numel = max(1, data.numel * packing)
    read = read_bytes(node.spec(1))
    for table in (data, node.spec(2), node.spec(3)):
        read += -(-read_bytes(table) * out.numel // table_numel)
    return OpCost(0, out.numel, read, out.size_bytes)


def _scatter_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """The data's gradient is a copy of dY, the updates' a gather of it."""
    cost = OpCost()
    for index in sorted(wrt):
        size_bytes = node.require(index).size_bytes
        cost += OpCost(0, 0, size_bytes + read_bytes(node.spec(1)), size_bytes)
    return cost


@rule(
    "Scatter",
    "ScatterElements",
    "ScatterND",
    op_class=OpClass.GATHER,
    backward=_scatter_backward,
    saves=("in1",),
)
def scatter(node: OpNode) -> OpCost:
    """Data, indices, updates: a copy of the data with updates put in, or reduced in (one FLOP each).

    Source: ONNX ScatterElements-18, ScatterND-18.
    """
    reducing = attr_str(node, "reduction", "none") != "none"
    return traffic(node, elementwise_flops=REDUCTION * node.require(2).numel if reducing else 0)


def _tensor_scatter_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    cost = OpCost()
    for index in sorted(wrt):
        size_bytes = node.require(index).size_bytes
        cost += OpCost(0, 0, size_bytes, size_bytes)
    return cost


@rule("TensorScatter", op_class=OpClass.GATHER, backward=_tensor_scatter_backward)
def tensor_scatter(node: OpNode) -> OpCost:
    """Cache ``[B, *, S, *]`` updated in place: reads and writes the update alone.

    Source: ONNX TensorScatter-24 ("models an in-place update").
    """
    update = node.require(1)
    return OpCost(0, 0, read_bytes(update, node.spec(2)), update.size_bytes)


@rule("OneHot", op_class=OpClass.GATHER, backward=no_gradient)
def one_hot(node: OpNode) -> OpCost:
    """Indices of any shape; the output gains an axis and is written whole.

    Source: ONNX OneHot-11.
    """
    return traffic(node)
