"""The ``calibrated`` profile: a roofline per operator, a host lane, communication beside the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphcost.arch import Architecture, Placement
from graphcost.engine.constants import Constants
from graphcost.engine.input import InputPipeline, exposed_input_s, input_stages
from graphcost.engine.roofline import Bound, DeviceModel, host_time
from graphcost.engine.spread import spread_of
from graphcost.engine.timeline import BUCKETINGS, Bucketing, Overlap
from graphcost.engine.trainers import TRAINERS, Stretches, Trainer
from graphcost.ir import Phase
from graphcost.predict.losses import beyond_the_wire, comm_spread
from graphcost.predict.sending import messages_of, pass_of
from graphcost.predict.step_time import Message, PhaseTime, StepTime, TimedOp
from graphcost.recipe import Execution
from graphcost.training import PlannedOp, StepPlan


def predict_calibrated(
    plan: StepPlan,
    arch: Architecture,
    placement: Placement,
    *,
    overlap: Overlap = Overlap.BUCKETED,
    bucketing: Bucketing = BUCKETINGS["ddp"],
    pipeline: InputPipeline | None = None,
    straggler_spread: float = 0.0,
) -> StepTime:
    """Time of one step of all its micro-batches; each part is over the whole step.

    The host runs ahead over many steps, so a step takes the longer of GPU, waiting for
    communication included, and host; a trainer that reads gradients back stops it before the
    update, which then has its own longer side. The optimizer begins when every bucket has arrived, as in DDP.
    ``straggler_spread``: standard deviation of the step over GPUs as a share, where it is known.
    """
    pipeline = pipeline or InputPipeline()
    plan = arch.local_plan(plan, placement)
    device, accumulate = placement.cluster.device, plan.recipe.accumulate
    model = DeviceModel(device, plan.recipe)
    timed = {
        phase: tuple(TimedOp(op, model.time(op)) for op in ops)
        for phase, ops in (
            (Phase.FORWARD, plan.forward), (Phase.BACKWARD, plan.backward), (Phase.UPDATE, plan.updates),
        )
    }  # fmt: skip
    everything = (*timed[Phase.FORWARD], *timed[Phase.BACKWARD])
    compute_s = accumulate * _busy_s(everything, Bound.COMPUTE) + _busy_s(timed[Phase.UPDATE], Bound.COMPUTE)
    memory_s = accumulate * _busy_s(everything, Bound.MEMORY) + _busy_s(timed[Phase.UPDATE], Bound.MEMORY)
    trips = {Phase.FORWARD: accumulate, Phase.BACKWARD: accumulate, Phase.UPDATE: 1}
    busy = {phase: trips[phase] * sum(one.time.time_s for one in ops) for phase, ops in timed.items()}
    trainer = TRAINERS.find(plan.recipe.trainer)
    own = _host(plan, model.constants, trainer, placement.cluster.server.host_factor, apart=not device.curves)
    stretches = trainer.stretches
    launching = arch.host_s(own, plan, placement)
    host = {phase: trips[phase] * seconds for phase, seconds in launching.items()}
    alone_s = sum(max(sum(side[phase] for phase in stretch) for side in (busy, host)) for stretch in stretches)

    def sent(waits: Mapping[Phase, float]) -> tuple[Message, ...]:
        """What is sent where the GPU waits for launches."""
        passes = {
            phase: pass_of(timed[phase], (busy[phase] + waits[phase]) / accumulate)
            for phase in (Phase.FORWARD, Phase.BACKWARD)
        }
        found = messages_of(arch.exchanges(plan, placement), passes, overlap, bucketing)
        return found + beyond_the_wire(found, alone_s, placement, straggler_spread)

    messages = sent(dict.fromkeys(Phase, 0.0))
    waits = _waits(stretches, busy, host, _exposed_s(messages))
    if any(waits.values()):  # waiting for launches hides communication too
        messages = min(messages, sent(waits), key=_exposed_s)
        waits = _waits(stretches, busy, host, _exposed_s(messages))
    exposed_comm_s = _exposed_s(messages)
    forward, backward, update = (PhaseTime(busy[phase], waits[phase], host[phase]) for phase in Phase)
    waits_s = sum(waits.values())
    samples = None if plan.batch is None else accumulate * plan.batch
    copy_rate = placement.cluster.server.pcie.bytes_per_s * max(1, _uplinks(placement)) / placement.gpus_per_server
    stages = input_stages(pipeline, samples, accumulate * plan.input_bytes, placement.gpus_per_server, copy_rate)
    found = StepTime(
        input_s=exposed_input_s(pipeline, stages, compute_s + memory_s + waits_s + exposed_comm_s),
        compute_s=compute_s,
        memory_s=memory_s,
        host_s=waits_s,
        comm_s=sum(message.time_s for message in messages),
        exposed_comm_s=exposed_comm_s,
        messages=messages,
        ops=(*everything, *timed[Phase.UPDATE]),
        forward=forward,
        backward=backward,
        update=update,
        stages=stages,
        accumulate=accumulate,
        comm_spread=comm_spread(messages),
        shared_host_s=sum(host.values()) - sum(trips[phase] * seconds for phase, seconds in own.items()),
        stretches=stretches,
    )
    return replace(found, gpu_spread=spread_of(found.class_seconds, device, plan.precision))


def _uplinks(placement: Placement) -> int:
    server = placement.cluster.server
    return -(-placement.gpus_per_server // (server.pcie_gpus_sharing or 1))


def _busy_s(ops: Iterable[TimedOp], bound: Bound) -> float:
    return sum(timed.time.time_s for timed in ops if timed.time.bound is bound)


def _host(
    plan: StepPlan, constants: Constants, trainer: Trainer, machine: float, *, apart: bool
) -> dict[Phase, float]:
    """Seconds of launching each phase once; nothing where measured curves hold the launches: not ``apart``."""
    compiled = plan.recipe.execution is Execution.COMPILED
    launched = {
        Phase.FORWARD: _launches(plan.forward),
        Phase.BACKWARD: _launches(plan.backward),
        Phase.UPDATE: len(plan.updates),
    }
    factor = machine * plan.recipe.host_factor if apart else 0.0
    found = {p: factor * host_time(constants, count, p, compiled=compiled) for p, count in launched.items()}
    found[Phase.UPDATE] += machine * trainer.host_s(len(plan.updates))
    return found


def _waits(
    stretches: Stretches, busy: Mapping[Phase, float], host: Mapping[Phase, float], exposed_comm_s: float
) -> dict[Phase, float]:
    """What the GPU waits for launches: in each stretch what the host takes longer, by each phase's share of it."""
    found = dict.fromkeys(Phase, 0.0)
    for stretch in stretches:
        host_s = sum(host[phase] for phase in stretch)
        gpu_s = sum(busy[phase] for phase in stretch) + (exposed_comm_s if Phase.BACKWARD in stretch else 0.0)
        if host_s > gpu_s:
            found |= {phase: (host_s - gpu_s) * host[phase] / host_s for phase in stretch}
    return found


def _exposed_s(messages: Iterable[Message]) -> float:
    return sum(message.exposed_s for message in messages)


def _launches(ops: Iterable[PlannedOp]) -> int:
    return sum(op.repeat * op.launches for op in ops)
