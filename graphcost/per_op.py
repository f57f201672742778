"""The rows of a result: every operator with its costs, its predicted time and what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcost.engine.roofline import Bound, OpTime
from graphcost.graph import operators
from graphcost.ir import Phase
from graphcost.predict import StepTime
from graphcost.result import OpInfo
from graphcost.training import StepPlan

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


def op_rows(graph: OpGraph, plan: StepPlan, step: StepTime) -> tuple[OpInfo, ...]:
    """One row per operator; casts and gradient sums that run on its behalf are in its times."""
    seconds: dict[tuple[str, Phase], float] = {}
    first: dict[str, OpTime] = {}
    for timed in step.ops:
        key = (timed.op.id, timed.op.phase)
        seconds[key] = seconds.get(key, 0.0) + timed.time.time_s
        if timed.op.phase is Phase.FORWARD:
            first[timed.op.id] = timed.time  # the operator itself follows its casts
    back_flops: dict[str, int] = {}
    back_bytes: dict[str, int] = {}
    for op in plan.backward:
        if op.cost is not None:
            back_flops[op.id] = back_flops.get(op.id, 0) + op.cost.flops
            back_bytes[op.id] = back_bytes.get(op.id, 0) + op.cost.bytes
    classes = {op.id: op.op_class for op in plan.forward}
    rows = []
    for node_id, node, cost in operators(graph):
        time = first.get(node_id)
        forward_s, back_s = seconds.get((node_id, Phase.FORWARD)), seconds.get((node_id, Phase.BACKWARD), 0.0)
        op_class = classes[node_id]
        rows.append(
            OpInfo(
                id=node_id,
                name=node.name,
                op_type=node.kind,
                op_class=str(op_class) if op_class is not None else "unknown",
                module=node.module,
                origin=node.origin,
                repeat=node.repeat,
                counted=cost is not None,
                matmul_flops=cost.matmul_flops if cost is not None else 0,
                elementwise_flops=cost.elementwise_flops if cost is not None else 0,
                read_bytes=cost.read_bytes if cost is not None else 0,
                write_bytes=cost.write_bytes if cost is not None else 0,
                backward_flops=back_flops.get(node_id, 0),
                backward_bytes=back_bytes.get(node_id, 0),
                params=sum(param.numel for _, param in node.params),
                forward_s=forward_s,
                backward_s=back_s if forward_s is not None else None,
                time_s=forward_s + back_s if forward_s is not None else None,
                bound=str(time.bound) if time is not None else str(Bound.UNKNOWN),
                efficiency=time.efficiency if time is not None and time.time_s else None,
                efficiency_source=time.source if time is not None and time.time_s else "",
            )
        )
    return tuple(rows)
