"""The time of a step over a mesh: the slowest stage, its exchanges, and the pipeline's bubble."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphcost.arch import Placement
from graphcost.arch.product import ONCE, Product, StageArch
from graphcost.parallel.division import DividedPlan
from graphcost.parallel.groups import ORDERS
from graphcost.parallel.schedule import bubble_s
from graphcost.predict.calibrated import predict_calibrated
from graphcost.predict.losses import comm_spread
from graphcost.predict.step_time import BUBBLE, Message, StepTime


def predict_divided(plan: DividedPlan, arch: Product, placement: Placement, **how: Any) -> StepTime:
    """As ``predict_calibrated``, whose options ``how`` are; the order of groups that is faster."""
    orders = ORDERS if plan.mesh.pp > 1 and plan.mesh.dp > 1 and placement.servers > 1 else ORDERS[:1]
    return min((_in_order(plan, arch, placement, order, how) for order in orders), key=lambda step: step.step_s)


def _in_order(
    plan: DividedPlan, arch: Product, placement: Placement, order: tuple[str, ...], how: dict[str, Any]
) -> StepTime:
    stages = arch.stages(plan, placement, order)
    known: dict[Any, StepTime] = {}  # stages that look the same take as long
    for one in stages:
        if _look(one) not in known:
            known[_look(one)] = predict_calibrated(one.stage.plan, one, placement, **how)
    steps = [known[_look(one)] for one in stages]
    if len(steps) == 1:
        return steps[0]
    mesh, once = plan.mesh, [_micro_batch_s(step, plan.mesh.micro_batches) for step in steps]
    slowest = max(range(len(steps)), key=lambda at: steps[at].step_s)
    step = steps[slowest]
    # A stage whose gradients take long may be the slowest without having the longest micro-batches.
    idle_s = bubble_s(once, mesh.chunks) + mesh.micro_batches * (max(once) - once[slowest])
    bubble = Message(
        BUBBLE, "none", "bubble", 0.0, idle_s, idle_s,
        formula=f"one micro-batch through the other {mesh.pp - 1} stages" + f" / {mesh.chunks}" * (mesh.chunks > 1),
        source=f"{mesh.schedule}, {mesh.micro_batches} micro-batches; groups nearest first: {', '.join(order)}",
        spread=step.gpu_spread.high,
    )  # fmt: skip
    return replace(
        step, comm_s=step.comm_s + idle_s, exposed_comm_s=step.exposed_comm_s + idle_s,
        messages=(*step.messages, bubble), comm_spread=comm_spread((*step.messages, bubble)),
    )  # fmt: skip


def _look(arch: StageArch) -> tuple[Any, ...]:
    stage = arch.stage
    return (stage.look, stage.received_bytes, stage.plan.input_bytes, arch.tied_bytes)


def _micro_batch_s(step: StepTime, micro_batches: int) -> float:
    """Forward and backward of one micro-batch with what it sends."""
    assert step.forward is not None and step.backward is not None
    sent = sum(one.exposed_s for one in step.messages if one.bytes and not _is_once(one))
    return (step.forward.wall_s + step.backward.wall_s + sent) / micro_batches


def _is_once(message: Message) -> bool:
    return message.what in ONCE or message.what.startswith(("weights,", "gradients"))
