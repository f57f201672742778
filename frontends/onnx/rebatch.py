"""A file fixed at batch 1, run at another batch: sizes baked into the graph follow, or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from onnx import NodeProto

from graphcost.errors import UsageError
from graphcost.frontends.onnx.values import Value
from graphcost.ir import OpNode

# Operators whose output sizes stand in an input, batch first: Reshape-5, Resize-11.
_TARGETS = {"Reshape": 1, "Resize": 3}


def adapted(node: NodeProto, inputs: list[Value | None], old: int, new: int) -> list[Value | None]:
    """``inputs`` with a stored target size that names the old batch following the data to the new one."""
    at = _TARGETS.get(node.op_type)
    if at is None or len(inputs) <= at:
        return inputs
    data, target = inputs[0], inputs[at]
    if data is None or target is None or target.data is None or data.spec is None or not data.spec.shape:
        return inputs
    sizes = target.data.reshape(-1)
    if not target.stored or not sizes.size or sizes[0] != old or data.spec.shape[0] != new:
        return inputs
    changed = sizes.copy()
    changed[0] = new
    return [*inputs[:at], replace(target, data=changed), *inputs[at + 1 :]]


def refusal(old: int, new: int, why: str) -> UsageError:
    """The error for a file that cannot be run at ``new``."""
    return UsageError(
        f"the file is fixed at batch {old} and cannot be run at {new}: {why}; "
        "leave --batch out, or export with an open batch dimension"
    )


def check_scaled(
    before: Sequence[OpNode], after: Sequence[OpNode], old: int, new: int, matmul_flops: Callable[[OpNode], int]
) -> None:
    """Raise ``UsageError`` unless every operator grew with the batch, or holds nothing of it.

    A contraction must grow with the batch; every other result must too, or keep its size
    (masks, positions). A size baked into the graph shows as one that does neither.
    """
    if len(before) != len(after):
        raise refusal(old, new, "its operators change")
    for first, second in zip(before, after, strict=True):
        if matmul_flops(second) * old != matmul_flops(first) * new or not _grew(first, second, old, new):
            raise refusal(old, new, f"{second.name} ({second.op_type}) does not scale with the batch")


def _grew(first: OpNode, second: OpNode, old: int, new: int) -> bool:
    for small, large in zip(first.outputs, second.outputs, strict=True):
        if small is None or large is None:
            if small is not large:
                return False
        elif large.numel not in (small.numel, small.numel * new // old):
            return False
    return True
