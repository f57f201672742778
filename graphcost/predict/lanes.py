"""A predicted step as slices on lanes: host, compute, copy, network. For traces and pictures.

Slices of a lane never overlap; those of one part add up to it. Waiting is a slice too:
for launches before the operators that need them, for data and for communication where
the step stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphcost.engine.roofline import Bound
from graphcost.ir import Phase
from graphcost.predict.step_time import Message, PhaseTime, StepTime, TimedOp


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that takes time on one lane; ``part`` is the part of the step that it counts into, if any.

    Parts are those of ``StepTime``: input, compute, memory, host, communication. Lanes
    that run beside the step (copies, launches, hidden sends) count into none.
    """

    lane: str
    name: str
    start_s: float
    duration_s: float
    part: str = ""
    op_id: str = ""
    phase: str = ""
    bytes: float = 0.0
    flops: int = 0


def slices_of(step: StepTime) -> tuple[Slice, ...]:
    """All slices in order of lanes and time; empty for a step without phases (``paper``)."""
    if step.forward is None or step.backward is None or step.update is None:
        return ()
    walk = _Walk()
    walk.wait("waits for input", step.input_s, "input")
    for message in step.messages:
        if message.before:
            walk.send(message, walk.clock)
            walk.wait(f"waits for {message.what}", message.exposed_s, "communication")
    by_phase = {phase: [one for one in step.ops if one.op.phase is phase] for phase in Phase}
    begun_backward = walk.clock
    for _ in range(step.accumulate):
        walk.phase(by_phase[Phase.FORWARD], step.forward, step.accumulate)
        begun_backward = walk.clock
        walk.phase(by_phase[Phase.BACKWARD], step.backward, step.accumulate)
    for message in step.messages:
        if not message.before:
            walk.send(message, begun_backward)
            walk.wait(f"waits for {message.what}", message.exposed_s, "communication")
    if len(step.stretches) > 1:  # the host has waited for the gradients
        walk.host_clock = max(walk.host_clock, walk.clock)
    walk.phase(by_phase[Phase.UPDATE], step.update, 1)
    return (*walk.host, *walk.compute, *_copies(step), *walk.network)


class _Walk:
    """The compute lane's clock, and the slices that others hang on it."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.host_clock = 0.0
        self.host: list[Slice] = []
        self.compute: list[Slice] = []
        self.network: list[Slice] = []

    def wait(self, name: str, duration_s: float, part: str, phase: str = "") -> None:
        if duration_s > 0:
            self.compute.append(Slice("compute", name, self.clock, duration_s, part, phase=phase))
            self.clock += duration_s

    def phase(self, ops: list[TimedOp], time: PhaseTime, trips: int) -> None:
        """One pass: its waiting is spread over the launches. The host runs ahead, one launch after another."""
        update = bool(ops) and ops[0].op.phase is Phase.UPDATE
        launches = len(ops) if update else sum(one.op.launches * one.op.repeat for one in ops)
        for one in ops:
            op = one.op
            share = (1 if update else op.launches * op.repeat) / launches if launches else 0.0
            host_s = time.host_s / trips * share
            if host_s > 0:
                self.host.append(Slice("host", f"launch {op.name}", self.host_clock, host_s, "", op.id, op.phase))
                self.host_clock += host_s
            self.wait("waits for launches", time.wait_s / trips * share, "host", op.phase)
            if one.time.time_s > 0:
                part = "compute" if one.time.bound is Bound.COMPUTE else "memory"
                moved, flops = (op.cost.bytes, op.cost.flops) if op.cost is not None else (0, 0)
                self.compute.append(
                    Slice("compute", op.name, self.clock, one.time.time_s, part, op.id, op.phase, moved, flops)
                )
                self.clock += one.time.time_s

    def send(self, message: Message, base_s: float) -> None:
        begun = message.sends[0].start_s if message.before and message.sends else 0.0
        lane = f"network: {message.what}"
        for sent in message.sends:
            start = base_s + sent.start_s - begun
            self.network.append(
                Slice(lane, f"{message.kind}, {message.link}", start, sent.end_s - sent.start_s, bytes=sent.bytes)
            )


def _copies(step: StepTime) -> Iterator[Slice]:
    """The stages of the next step's data, each on a lane of its own, from the step's beginning."""
    for stage in step.stages:
        yield Slice(f"input: {stage.what}", f"{stage.what} the batch", 0.0, stage.time_s, bytes=stage.bytes)
