"""Optimus: the next task where it shortens the remaining time most, per share taken (Peng et al., EuroSys'18).

Every job starts with one worker and one parameter server; then the worker or server with the largest
positive gain is added until none is left or nothing fits. Registered three times: with its own estimator, fitted
to noisy measurements; with the exact speeds, which shows what the estimates cost; and with the estimator on a
compact allocation, which shows what its placement costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from graphcost.sched.allocation import Allocation
from graphcost.sched.compact_nodes import CompactAllocation
from graphcost.sched.estimate import SpeedEstimate
from graphcost.sched.packing import packed_on_few_nodes
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.view import Decision, JobView, SlotView, Speed

_SOURCE = "Peng et al., EuroSys'18; gains, start and placement as in its public code"


@register(
    "optimus",
    knows=Knowledge.SAMPLES,
    summary="largest gain in remaining time per share; speeds fitted to noisy measurements",
    source=_SOURCE,
)
def optimus(view: SlotView, seed: int) -> Decision:
    """With its own estimator."""
    return _packed(view, _estimates(view))


@register(
    "optimus-exact",
    knows=Knowledge.EXACT,
    summary="the same with the exact speeds: what its estimator costs",
    source=_SOURCE,
)
def optimus_exact(view: SlotView, seed: int) -> Decision:
    """With the simulation's own speeds."""
    return _packed(view, {job.job_id: job.speed for job in view.jobs if job.speed is not None})


@register(
    "optimus-compact",
    knows=Knowledge.SAMPLES,
    summary="optimus, but a task only while every job stays on the fewest nodes: what its placement costs",
    source="gains as in Peng et al., EuroSys'18; the placement is ours (compact)",
)
def optimus_compact(view: SlotView, seed: int) -> Decision:
    """With its own estimator and the placement of ``compact``."""
    allocation = CompactAllocation(view)
    _fill(allocation, _estimates(view))
    return allocation.decision()


_ADDED = ((1, 0), (0, 1))
"""A worker, or a parameter server."""


def _estimates(view: SlotView) -> dict[str, Speed]:
    return {job.job_id: SpeedEstimate(job, view.observations.get(job.model, ())) for job in view.jobs}


def _packed(view: SlotView, speeds: Mapping[str, Speed]) -> Decision:
    allocation = Allocation(view)
    _fill(allocation, speeds)
    decision = allocation.decision()
    return packed_on_few_nodes(view, decision) or decision


def _fill(allocation: Allocation, speeds: Mapping[str, Speed]) -> None:
    view = allocation.view
    started = [job for job in view.jobs if allocation.add_bundle(job)]
    shares = {
        (job.job_id, added): job.demand(*added).dominant_share(view.capacity) for job in started for added in _ADDED
    }
    by_id = {job.job_id: job for job in started}
    gains: list[tuple[float, int, int, str, tuple[int, int]]] = []

    def offer(job: JobView) -> None:
        """Put the job's next tasks into the heap; entries made for other counts are stale."""
        have = (allocation.workers(job), allocation.ps(job))
        for kind, added in enumerate(_ADDED):
            if not allocation.within_caps(job, *added):
                continue
            gain_s = _saved_s(job, speeds[job.job_id], have, added)
            if gain_s > 0:
                gain = gain_s / (shares[job.job_id, added] or 1e-12)
                heappush(gains, (-gain, job.order, kind, job.job_id, have))

    for job in started:
        offer(job)
    while gains:
        _, _, kind, job_id, have = heappop(gains)
        job = by_id[job_id]
        if have == (allocation.workers(job), allocation.ps(job)) and allocation.add(job, *_ADDED[kind]):
            offer(job)


def _saved_s(job: JobView, speed: Speed, have: tuple[int, int], added: tuple[int, int]) -> float:
    now, then = speed(*have), speed(have[0] + added[0], have[1] + added[1])
    if then <= 0:
        return 0.0
    return float("inf") if now <= 0 else job.remaining_epochs / now - job.remaining_epochs / then
