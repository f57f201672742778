"""The step of one worker among many that do not wait for each other: its own pace, or the servers'."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphcost.arch import Placement
from graphcost.arch.async_ps import AsyncParameterServer
from graphcost.network.links import many_streams
from graphcost.predict.calibrated import predict_calibrated
from graphcost.predict.losses import comm_spread
from graphcost.predict.step_time import QUEUE, Message, StepTime
from graphcost.training import StepPlan


def predict_async(plan: StepPlan, arch: AsyncParameterServer, placement: Placement, **how: Any) -> StepTime:
    """As ``predict_calibrated``, whose options ``how`` are; a full parameter server holds its workers back."""
    step = predict_calibrated(plan, arch, placement, **how)
    queued_s = arch.serving_s(plan, placement) - step.step_s
    if queued_s <= 0:
        return step
    network = many_streams(placement.cluster, placement.servers)
    queue = Message(
        QUEUE, network.name, "queue", 0.0, queued_s, queued_s,
        formula="one step of every worker through the fullest server, 2 m k S/(P B), less a worker's own step",
        source=f"derived, not measured; {network.name}: {network.source}", spread=network.spread,
    )  # fmt: skip
    messages = (*step.messages, queue)
    return replace(
        step, comm_s=step.comm_s + queued_s, exposed_comm_s=step.exposed_comm_s + queued_s,
        messages=messages, comm_spread=comm_spread(messages),
    )  # fmt: skip
