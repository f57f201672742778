"""Outputs whose size depends on data: the largest they can be, which is said in a note."""

from __future__ import annotations

from collections.abc import Sequence

from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec


def upper_bound(op_type: str, output: int, inputs: Sequence[Value | None]) -> TensorSpec | None:
    """The largest shape of ``output``, or None where the operator gives no bound.

    Source: ONNX NonZero-13, Compress-11, Unique-11, NonMaxSuppression-11.
    """
    first = inputs[0] if inputs else None
    if first is None or first.spec is None:
        return None
    numel = first.spec.numel
    match op_type:
        case "NonZero":
            return TensorSpec((len(first.spec.shape), numel), "int64")
        case "Compress":
            return TensorSpec((numel,), first.spec.dtype)
        case "Unique":
            return TensorSpec((numel,), first.spec.dtype if output == 0 else "int64")
        case "NonMaxSuppression":
            return _non_max_suppression(first.spec, inputs)
    return None


def _non_max_suppression(boxes: TensorSpec, inputs: Sequence[Value | None]) -> TensorSpec | None:
    scores = inputs[1] if len(inputs) > 1 else None
    if scores is None or scores.spec is None or len(boxes.shape) != 3 or len(scores.spec.shape) != 3:
        return None
    batch, spatial, _ = boxes.shape
    limit = inputs[2] if len(inputs) > 2 else None
    kept = spatial
    if limit is not None and limit.data is not None:
        kept = min(spatial, max(0, int(limit.data.reshape(-1)[0])))
    return TensorSpec((batch * scores.spec.shape[1] * kept, 3), "int64")
