"""The time of a step, part by part, with what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.engine.input import InputStage
from graphcost.engine.roofline import OpTime
from graphcost.engine.spread import NO_SPREAD, Spread
from graphcost.engine.timeline import Send
from graphcost.engine.trainers import Stretches
from graphcost.ir import Phase
from graphcost.training import PlannedOp

BUBBLE = "pipeline bubble"
"""What the message of a pipeline's idle time is called: no bytes, and inside exposed communication."""


QUEUE = "queue at parameter servers"
"""What the message of an asynchronous worker's waiting for full servers is called: no bytes of its own."""


@dataclass(frozen=True, slots=True)
class Message:
    """Communication of one kind over one link: bytes a GPU moves, time on the wire, time exposed.

    ``sends``: every bucket, in seconds from the beginning of the last backward pass, or
    from the step's beginning where ``before`` says that the forward pass waits for it.
    ``formula`` and ``source``: how ``time_s`` was counted, and where its constants are from.
    ``spread``: ``exposed_s`` lies between 1/(1 + s) and (1 + s) of what is said.
    """

    what: str
    link: str
    kind: str
    bytes: float
    time_s: float
    exposed_s: float
    sends: tuple[Send, ...] = ()
    before: bool = False
    formula: str = ""
    source: str = ""
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedOp:
    """A planned operator with its time."""

    op: PlannedOp
    time: OpTime


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One phase over all micro-batches: the GPU at work, and waiting for launches."""

    busy_s: float = 0.0
    wait_s: float = 0.0
    host_s: float = 0.0

    @property
    def wall_s(self) -> float:
        """The phase from end to end."""
        return self.busy_s + self.wait_s


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step. The first four parts and ``exposed_comm_s`` add up to ``step_s``.

    ``forward``, ``backward`` and ``update`` split compute, memory and host parts by
    phase; None under ``paper``, which has no phases. ``*_low_s`` and ``*_high_s`` bound
    the prediction; they equal it under ``paper``, which makes no claim about its error.
    ``shared_host_s``: of the host's time, what one GPU alone would not need (all of it in
    forward and backward). ``stretches``: phases through which the host runs ahead of the GPU.
    """

    input_s: float
    compute_s: float
    memory_s: float
    host_s: float
    comm_s: float
    exposed_comm_s: float
    messages: tuple[Message, ...] = ()
    ops: tuple[TimedOp, ...] = ()
    forward: PhaseTime | None = None
    backward: PhaseTime | None = None
    update: PhaseTime | None = None
    stages: tuple[InputStage, ...] = ()
    accumulate: int = 1
    gpu_spread: Spread = NO_SPREAD
    comm_spread: float = 0.0
    shared_host_s: float = 0.0
    stretches: Stretches = (tuple(Phase),)

    @property
    def step_s(self) -> float:
        """The whole step."""
        return self._rest_s + self.exposed_comm_s

    @property
    def class_seconds(self) -> dict[str, float]:
        """GPU time by operator class over all micro-batches, ``update``, and ``host``: waiting for launches."""
        found = {"host": self.host_s}
        for one in self.ops:
            in_update = one.op.phase is Phase.UPDATE
            name = "update" if in_update else str(one.op.op_class or "unknown")
            found[name] = found.get(name, 0.0) + one.time.time_s * (1 if in_update else self.accumulate)
        return {name: seconds for name, seconds in found.items() if seconds > 0}

    @property
    def bubble_s(self) -> float:
        """Idle time of a pipeline that fills and drains; part of ``exposed_comm_s``."""
        return sum(message.exposed_s for message in self.messages if message.what == BUBBLE)

    @property
    def hidden_comm_s(self) -> float:
        """Communication that the step does not wait for."""
        return max(0.0, self.comm_s - self.exposed_comm_s)

    @property
    def alone_s(self) -> float:
        """The step without communication and with its data at hand: the longer of GPU and host."""
        if self.forward is None or self.backward is None or self.update is None:
            return self.compute_s + self.memory_s + self.host_s
        phases = {Phase.FORWARD: self.forward, Phase.BACKWARD: self.backward, Phase.UPDATE: self.update}
        found_s = 0.0
        for stretch in self.stretches:
            launches_s = sum(phases[phase].host_s for phase in stretch)
            launches_s -= self.shared_host_s if Phase.BACKWARD in stretch else 0.0
            found_s += max(sum(phases[phase].busy_s for phase in stretch), launches_s)
        return found_s

    @property
    def _rest_s(self) -> float:
        return self.input_s + self.compute_s + self.memory_s + self.host_s

    @property
    def comm_share(self) -> float:
        """Exposed communication over the step; 0 for an empty step."""
        return _share(self.exposed_comm_s, self._rest_s)

    @property
    def comm_share_low(self) -> float:
        """Share where communication is as fast and computation as slow as the interval allows."""
        return _share(self.exposed_comm_s / (1 + self.comm_spread), self._rest_s * (1 + self.gpu_spread.high))

    @property
    def comm_share_high(self) -> float:
        """Share where communication is as slow and computation as fast as the interval allows."""
        return _share(self.exposed_comm_s * (1 + self.comm_spread), self._rest_s / (1 + self.gpu_spread.low))

    @property
    def step_low_s(self) -> float:
        """Lower end of the step's interval."""
        return self._rest_s / (1 + self.gpu_spread.low) + self.exposed_comm_s / (1 + self.comm_spread)

    @property
    def step_high_s(self) -> float:
        """Upper end of the step's interval."""
        return self._rest_s * (1 + self.gpu_spread.high) + self.exposed_comm_s * (1 + self.comm_spread)

    @property
    def bound(self) -> str:
        """The largest part."""
        parts = {
            "input": self.input_s, "compute": self.compute_s, "memory": self.memory_s,
            "host": self.host_s, "communication": self.exposed_comm_s,
        }  # fmt: skip
        return max(parts, key=lambda name: parts[name])


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0
