"""ZeRO: replicas that divide optimizer state, gradients and weights among them.

Stage 1 divides the optimizer's state: gradients are reduce-scattered, every GPU updates
its share, weights are all-gathered. Stage 2 divides gradients too, stage 3 weights: they
are gathered ahead of their use, forward and again backward (torch FSDP, DeepSpeed).
Source: Rajbhandari et al., ZeRO (SC 2020): volumes of 1x, 1x and 1.5x of all-reduce;
Zhao et al., PyTorch FSDP (VLDB 2023) for prefetching.
"""

from __future__ import annotations

from dataclasses import replace

from graphcost.arch._base import (
    ARCHITECTURES,
    Exchange,
    PaperTraffic,
    Payload,
    Placement,
    ProcessPerGpu,
    dense_payload,
)
from graphcost.arch.allreduce import named
from graphcost.collectives import all_reduce_sent_bytes, moved_share
from graphcost.engine.paper import Medium
from graphcost.engine.timeline import Bucketing
from graphcost.ir import OpCost, Phase
from graphcost.network import Collective, way
from graphcost.training import PlannedOp, StepPlan
from graphcost.units import MIB

UNITS = 32
"""assumed: weights are gathered in about as many units as a decoder has blocks."""

LEAST_UNIT_BYTES = 25 * MIB
"""assumed: smaller modules share a unit, as the size-based wrapping of FSDP has it."""

_QUEUE = "collectives"


class Zero(ProcessPerGpu):
    """One of the three stages."""

    def __init__(self, stage: int) -> None:
        self.stage = stage
        self.name = f"zero{stage}"
        divided = ("optimizer state", "optimizer state and gradients", "optimizer state, gradients and weights")
        self.title = f"ZeRO-{stage}: replicas that divide {divided[stage - 1]}"

    def check(self, placement: Placement) -> None:
        """Any placement."""

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """As AllReduce."""
        return (Medium.NVLINK,) if placement.servers == 1 else (Medium.ETHERNET, Medium.NVLINK)

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """AllReduce's traffic, half as much again for stage 3. Not in the study."""
        sent = all_reduce_sent_bytes(plan.gradient_bytes, placement.gpus) * (1.5 if self.stage == 3 else 1.0)
        return (PaperTraffic("gradients and weights", 2 * sent, self.paper_media(placement)),) if sent else ()

    def paper_input_sharing(self, placement: Placement) -> int:
        """All GPUs of a server."""
        return placement.gpus_per_server

    def local_plan(self, plan: StepPlan, placement: Placement) -> StepPlan:
        """Every GPU updates its share of the parameters and holds its share of what is divided."""
        ranks = placement.gpus
        if ranks == 1:
            return plan
        memory = plan.memory.sharded(ranks, weights=self.stage == 3, gradients=self.stage >= 2, optimizer=True)
        return replace(plan, updates=tuple(_share_of(op, ranks) for op in plan.updates), memory=memory)

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Stage 1: buckets as DDP's. Stages 2 and 3: the unit being reduced; of stage 3 also two gathered ones."""
        if placement.gpus == 1:
            return 0
        unit = min(plan.gradient_bytes, max(LEAST_UNIT_BYTES, -(-plan.gradient_bytes // UNITS)))
        return (plan.gradient_bytes, unit, 3 * unit)[self.stage - 1]

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Gradients scattered behind the backward pass; weights gathered after the update, or ahead of use."""
        payload = dense_payload(plan.gradients)
        if placement.gpus == 1 or not payload:
            return ()
        # From stage 2 on nobody holds all gradients, so those of every micro-batch are reduced at once.
        trips = plan.recipe.accumulate if self.stage >= 2 else 1
        scattered = _exchange("gradients", Collective.REDUCE_SCATTER, payload, placement, trips=trips)
        if self.stage < 3:
            weights = _exchange("updated weights", Collective.ALL_GATHER, payload, placement, hides=False)
            return (scattered, weights)
        trips = plan.recipe.accumulate
        gathered = tuple(
            _exchange(f"weights, {phase}", Collective.ALL_GATHER, uses, placement, needed_in=phase, trips=trips)
            for phase in (Phase.FORWARD, Phase.BACKWARD)
            if (uses := _uses(plan, phase))
        )
        return (*gathered, scattered)


def _share_of(op: PlannedOp, ranks: int) -> PlannedOp:
    """An update of one share of a parameter."""
    cost = op.cost
    if cost is None:
        return op
    parts = (cost.matmul_flops, cost.elementwise_flops, cost.read_bytes, cost.write_bytes)
    return replace(op, cost=OpCost(*(-(-part // ranks) for part in parts)))


def _uses(plan: StepPlan, phase: Phase) -> Payload:
    """Weights in order of use in a phase: bytes, and the position of the first operator that needs them.

    Weights travel in the format that operators compute in. Frozen ones are spread evenly over the pass: the
    plan does not say who reads them.
    """
    ops = plan.forward if phase is Phase.FORWARD else plan.backward
    first: dict[str, int] = {}
    for position, op in enumerate(ops):
        first.setdefault(op.id, position)
    if not ops:
        return ()
    share = 2 / plan.recipe.weight_bytes if plan.precision.is_amp else 1.0
    uses = [
        (share * gradient.bytes, first.get(plan.backward[gradient.ready_index].id, 0)) for gradient in plan.gradients
    ]
    frozen_bytes = share * (plan.memory.weights_bytes - plan.gradient_bytes)
    if frozen_bytes > 0:
        parts = min(UNITS, len(ops))
        uses += [(frozen_bytes / parts, len(ops) * part // parts) for part in range(parts)]
    return tuple(sorted(uses, key=lambda use: use[1]))


def _exchange(
    what: str,
    collective: Collective,
    payload: Payload,
    placement: Placement,
    *,
    hides: bool = True,
    needed_in: Phase | None = None,
    trips: int = 1,
) -> Exchange:
    found = way(placement.cluster, placement.gpus, placement.servers, collective)
    total = sum(size for size, _ in payload)
    unit = max(LEAST_UNIT_BYTES, total / UNITS)
    return Exchange(
        what, found.link.name, str(collective), payload,
        trips * moved_share(str(collective), placement.gpus) * total, found.seconds, hides,
        found.link.interference, *named(found, total), bucketing=Bucketing("units", unit, unit),
        spread=found.link.spread, needed_in=needed_in, trips=trips, queue=_QUEUE,
    )  # fmt: skip


for _stage in (1, 2, 3):
    ARCHITECTURES.add(f"zero{_stage}", Zero(_stage))
