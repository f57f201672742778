"""From a step's plan and its placement to the time of a step, part by part.

Two profiles. ``paper``: the framework of the PAI study, flat utilisation, parts added.
``calibrated``: every operator on a roofline, host launches beside the GPU, gradient
buckets beside the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from graphcost.arch import Architecture, Placement
from graphcost.engine.paper import Medium, PaperFeatures, medium_bytes_per_s, paper_times, utilisation
from graphcost.engine.roofline import Bound, OpTime, efficiencies, host_time, op_time, update_time
from graphcost.engine.timeline import Bucket, Overlap, buckets, exposure
from graphcost.ir import Phase
from graphcost.ops import OpClass
from graphcost.training import PlannedOp, StepPlan


class Profile(StrEnum):
    """Which model of the hardware."""

    PAPER = "paper"
    CALIBRATED = "calibrated"


class Execution(StrEnum):
    """How operators are launched."""

    EAGER = "eager"
    COMPILED = "compiled"


@dataclass(frozen=True, slots=True)
class Message:
    """Communication of one kind over one link: bytes a GPU moves, time on the wire, time exposed."""

    what: str
    link: str
    kind: str
    bytes: float
    time_s: float
    exposed_s: float


@dataclass(frozen=True, slots=True)
class TimedOp:
    """A planned operator with its time."""

    op: PlannedOp
    time: OpTime


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step. The first four parts and ``exposed_comm_s`` add up to ``step_s``.

    ``*_low_s`` and ``*_high_s`` bound the prediction; they equal it under ``paper``, which
    makes no claim about its error.
    """

    input_s: float
    compute_s: float
    memory_s: float
    host_s: float
    comm_s: float
    exposed_comm_s: float
    messages: tuple[Message, ...] = ()
    ops: tuple[TimedOp, ...] = ()
    gpu_spread: float = 0.0
    comm_spread: float = 0.0

    @property
    def step_s(self) -> float:
        """The whole step."""
        return self._rest_s + self.exposed_comm_s

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
        return _share(self.exposed_comm_s / (1 + self.comm_spread), self._rest_s * (1 + self.gpu_spread))

    @property
    def comm_share_high(self) -> float:
        """Share where communication is as slow and computation as fast as the interval allows."""
        return _share(self.exposed_comm_s * (1 + self.comm_spread), self._rest_s / (1 + self.gpu_spread))

    @property
    def step_low_s(self) -> float:
        """Lower end of the step's interval."""
        return self._rest_s / (1 + self.gpu_spread) + self.exposed_comm_s / (1 + self.comm_spread)

    @property
    def step_high_s(self) -> float:
        """Upper end of the step's interval."""
        return self._rest_s * (1 + self.gpu_spread) + self.exposed_comm_s * (1 + self.comm_spread)

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


def paper_features(plan: StepPlan, arch: Architecture, placement: Placement) -> PaperFeatures:
    """PAI's job features from a graph (assumed mapping: COST_MODEL, Definitions).

    FLOPs are the contractions', forward and backward; S_mem the bytes of all other
    operators, forward, backward and update.
    """
    flops = mem_bytes = 0
    for op in (*plan.forward, *plan.backward):
        if op.cost is not None:
            flops += op.cost.matmul_flops
            mem_bytes += 0 if op.cost.matmul_flops else op.cost.bytes
    traffic = arch.paper_traffic(plan, placement)
    return PaperFeatures(
        input_bytes=plan.input_bytes,
        flops=flops,
        mem_bytes=mem_bytes + plan.update.bytes,
        weight_bytes=sum(part.weight_bytes for part in traffic),
    )


def predict_paper(
    plan: StepPlan,
    arch: Architecture,
    placement: Placement,
    *,
    overlap: Overlap = Overlap.NONE,
    input_sharing: int | None = None,
) -> StepTime:
    """The study's T = T_d + T_c + T_w; ``overlap`` ideal is its max() variant."""
    sharing = arch.paper_input_sharing(placement) if input_sharing is None else input_sharing
    features = paper_features(plan, arch, placement)
    times = paper_times(
        features,
        placement.cluster,
        arch.paper_media(placement),
        input_sharing=sharing,
        precision=plan.precision.value,
    )
    compute_s, input_s, comm_s = times.compute_s + times.memory_s, times.input_s, times.weight_s
    exposed_s = comm_s
    if overlap is Overlap.IDEAL:
        # max(T_d, T_c, T_w) written as parts that add up: what exceeds the part before it.
        exposed_s = max(0.0, comm_s - compute_s)
        input_s = max(0.0, input_s - max(compute_s, comm_s))
    messages = _paper_messages(plan, arch, placement, exposed_s / comm_s if comm_s else 0.0)
    return StepTime(input_s, times.compute_s, times.memory_s, 0.0, comm_s, exposed_s, messages)


def _paper_messages(plan: StepPlan, arch: Architecture, placement: Placement, exposed: float) -> tuple[Message, ...]:
    share = utilisation(placement.cluster)
    messages = []
    for part in arch.paper_traffic(plan, placement):
        for medium in part.media:
            seconds = part.weight_bytes / (share * medium_bytes_per_s(placement.cluster, medium))
            messages.append(
                Message(
                    part.what,
                    _medium_name(medium, placement),
                    "serial",
                    part.weight_bytes,
                    seconds,
                    seconds * exposed,
                )
            )
    return tuple(messages)


def _medium_name(medium: Medium, placement: Placement) -> str:
    scale_up = placement.cluster.server.scale_up
    if medium is Medium.NVLINK:
        return str(scale_up.kind) if scale_up is not None else "pcie"
    return str(medium)


def predict_calibrated(
    plan: StepPlan,
    arch: Architecture,
    placement: Placement,
    *,
    overlap: Overlap = Overlap.BUCKETED,
    execution: Execution = Execution.EAGER,
    accumulate: int = 1,
) -> StepTime:
    """Roofline per operator, host lane, bucketed overlap. Times are for ``accumulate`` micro-batches.

    The input copy is prefetched: what of it exceeds the GPU's time is exposed.
    """
    device, precision = placement.cluster.device, plan.precision
    forward = tuple(TimedOp(op, op_time(op, device, precision)) for op in plan.forward)
    backward = tuple(TimedOp(op, op_time(op, device, precision)) for op in plan.backward)
    update_s = update_time(plan.update, plan.param_tensors, device)
    compute_s = accumulate * _busy_s((*forward, *backward), Bound.COMPUTE)
    memory_s = accumulate * _busy_s((*forward, *backward), Bound.MEMORY) + update_s
    host_s, backward_s = _host_waits(plan, forward, backward, compute_s + memory_s, accumulate, execution)
    messages = _exchange(plan, arch, placement, backward, backward_s, overlap)
    pcie = placement.cluster.server.pcie
    copy_s = (
        accumulate * plan.input_bytes * placement.gpus_per_server / max(1, _uplinks(placement)) / pcie.bytes_per_s
    )
    interval = efficiencies()["interval"]
    return StepTime(
        input_s=max(0.0, copy_s - (compute_s + memory_s + host_s)),
        compute_s=compute_s,
        memory_s=memory_s,
        host_s=host_s,
        comm_s=sum(message.time_s for message in messages),
        exposed_comm_s=sum(message.exposed_s for message in messages),
        messages=messages,
        ops=(*forward, *backward),
        gpu_spread=interval["gpu"],
        comm_spread=interval["communication"],
    )


def _uplinks(placement: Placement) -> int:
    server = placement.cluster.server
    return -(-placement.gpus_per_server // (server.pcie_gpus_sharing or 1))


def _busy_s(ops: tuple[TimedOp, ...], bound: Bound) -> float:
    return sum(timed.time.time_s for timed in ops if timed.time.bound is bound)


def _host_waits(
    plan: StepPlan,
    forward: tuple[TimedOp, ...],
    backward: tuple[TimedOp, ...],
    gpu_s: float,
    accumulate: int,
    execution: Execution,
) -> tuple[float, float]:
    """(time the GPU waits for launches over the step, wall time of one backward pass).

    The host runs ahead as long as it is the faster: a step takes the longer of the two
    lanes. Waiting is spread over the passes by their launches.
    """
    compiled = execution is Execution.COMPILED
    backward_busy_s = _busy_s(backward, Bound.COMPUTE) + _busy_s(backward, Bound.MEMORY)
    forward_host_s = host_time(_launches(forward), Phase.FORWARD, compiled=compiled)
    backward_host_s = host_time(_launches(backward), Phase.BACKWARD, compiled=compiled)
    update_host_s = host_time(plan.param_tensors, Phase.UPDATE, compiled=compiled)
    host_s = accumulate * (forward_host_s + backward_host_s) + update_host_s
    waits_s = max(0.0, host_s - gpu_s)
    waits_backward_s = waits_s * backward_host_s / host_s if host_s else 0.0
    return waits_s, backward_busy_s + waits_backward_s


def _launches(ops: tuple[TimedOp, ...]) -> int:
    return sum(timed.op.repeat for timed in ops if timed.op.op_class not in (None, OpClass.FREE))


def _exchange(
    plan: StepPlan,
    arch: Architecture,
    placement: Placement,
    backward: tuple[TimedOp, ...],
    backward_s: float,
    overlap: Overlap,
) -> tuple[Message, ...]:
    """Every exchange of the architecture, hidden behind the backward pass where it can be."""
    elapsed = _elapsed(backward, backward_s)
    messages = []
    for part in arch.exchanges(plan, placement):
        sent: tuple[Bucket, ...] = (Bucket(part.size_bytes, backward_s),)
        if part.hides:
            sent = buckets((part_bytes, elapsed[ready_index]) for part_bytes, ready_index in part.payload)
        mode = overlap if part.hides else Overlap.NONE
        found = exposure(sent, part.seconds, backward_s, mode, part.interference)
        messages.append(Message(part.what, part.link, part.kind, part.wire_bytes, found.total_s, found.exposed_s))
    return tuple(messages)


def _elapsed(backward: tuple[TimedOp, ...], wall_s: float) -> list[float]:
    """When each backward operator is done; host waiting is spread evenly."""
    busy = sum(timed.time.time_s for timed in backward)
    stretch = wall_s / busy if busy else 1.0
    times: list[float] = []
    clock = 0.0
    for timed in backward:
        clock += timed.time.time_s * stretch
        times.append(clock)
    return times
