"""What onnx's shape inference must not be asked: it would crash, or allocate without end.

Inference is C++ that trusts some numbers of the file. What it trusts is checked before.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from graphcost.errors import ShapeError
from graphcost.frontends.onnx.values import Value

MAX_RANK = 1024
"""Axes of a tensor; assumed: no model comes near, and inference allocates by it."""

# Inputs of which every element is an axis of the output: Reshape-5, Expand-8, ConstantOfShape-9, Unsqueeze-13.
_RANKS = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Unsqueeze": 1, "Tile": 1}


def check_limits(node: NodeProto, inputs: Sequence[Value | None]) -> None:
    """Raise ``ShapeError`` for a ``node`` of the standard that inference must not see."""
    at = _RANKS.get(node.op_type)
    sizes = inputs[at] if at is not None and at < len(inputs) else None
    if sizes is not None and sizes.spec is not None and sizes.spec.numel > MAX_RANK:
        raise _refused(node, f"{sizes.spec.numel} axes are more than the {MAX_RANK} a tensor may have")
    for attribute in node.attribute:
        if attribute.name == "batch_dims" and attribute.i < 0:
            raise _refused(node, f"batch_dims is {attribute.i}; it must not be negative")
        if attribute.name == "num_outputs" and attribute.i != len(node.output):
            raise _refused(node, f"num_outputs is {attribute.i}, and {len(node.output)} outputs are named")


def _refused(node: NodeProto, fact: str) -> ShapeError:
    label = node.name or next((name for name in node.output if name), node.op_type)
    return ShapeError(f"{label} ({node.op_type}): {fact}")
