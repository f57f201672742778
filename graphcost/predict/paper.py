"""The ``paper`` profile: the framework of the PAI study, flat utilisation, parts added."""

from __future__ import annotations

from graphcost.arch import Architecture, Placement
from graphcost.engine.paper import Medium, PaperFeatures, medium_bytes_per_s, paper_times, utilisation
from graphcost.engine.timeline import Overlap
from graphcost.predict.step_time import Message, StepTime
from graphcost.training import StepPlan


def paper_features(plan: StepPlan, arch: Architecture, placement: Placement) -> PaperFeatures:
    """PAI's job features from a graph (assumed mapping: COST_MODEL, Definitions).

    FLOPs are the contractions', forward and backward; S_mem the bytes of all other
    operators, forward, backward and update.
    """
    flops = mem_bytes = 0
    mine = arch.local_plan(plan, placement)
    for op in (*mine.forward, *mine.backward):
        if op.cost is not None:
            flops += op.cost.matmul_flops
            mem_bytes += 0 if op.cost.matmul_flops else op.cost.bytes
    traffic = arch.paper_traffic(plan, placement)
    return PaperFeatures(
        input_bytes=plan.input_bytes,
        flops=flops,
        mem_bytes=mem_bytes + mine.update.bytes,
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
                    formula="S_w / (utilisation B)",
                    source="PAI study, Table II and its flat utilisation",
                )
            )
    return tuple(messages)


def _medium_name(medium: Medium, placement: Placement) -> str:
    scale_up = placement.cluster.server.scale_up
    if medium is Medium.NVLINK:
        return str(scale_up.kind) if scale_up is not None else "pcie"
    return str(medium)
