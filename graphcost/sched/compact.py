"""Compact: whole servers for short jobs first; a teacher for DL2 where speeds depend on the place.

What Optimus's greedy steps do not see, on AllReduce jobs of the cost engine: a job that leaves its server runs up to
thirty times slower; a step that gains nothing may lead to one that does; the time that a task saves is that of this
slot alone. So here tasks are added only while every job lies on as few nodes as it can; a step is any number of
further tasks, the best per share taken; its gain is the time saved if the job runs at its best speed from the next
slot on, as a share of the job's time left, so that what is nearly done goes first.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.compact_nodes import CompactAllocation
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.view import NOTHING, Decision, JobView, Resources, SlotView

Values = NDArray[np.float64]


@register(
    "compact",
    knows=Knowledge.EXACT,
    summary="every job on the fewest nodes; most time saved a share, looking past bumps; short jobs first",
    source="ours: Optimus's gains (Peng et al., EuroSys'18), with place, look-ahead and SRPT's order",
)
def compact(view: SlotView, seed: int) -> Decision:
    """Every job first gets its smallest bundle, the shortest first; then the best step of all, until none gains."""
    allocation = CompactAllocation(view)
    rates: dict[tuple[str, int, int], Values] = {}
    wishes = []
    for job in view.jobs:
        key = (job.model, job.max_workers, job.max_ps)
        if key not in rates:
            rates[key] = _rates(job)
        wishes.append(_Wish(job, rates[key], view.slot_s, view.capacity))
    started = [
        wish
        for wish in sorted(wishes, key=lambda one: (one.best_s, one.job.order))
        if allocation.add_bundle(wish.job)
    ]
    offers: list[tuple[float, int, int, tuple[int, int]]] = []

    def offer(index: int) -> None:
        """Put the job's best step into the heap."""
        wish = started[index]
        gain, step = wish.best_step(allocation.workers(wish.job), allocation.ps(wish.job))
        if gain > 0:
            heappush(offers, (-gain, wish.job.order, index, step))

    for index in range(len(started)):
        offer(index)
    while offers:
        _, _, index, step = heappop(offers)
        job = started[index].job
        if not allocation.add(job, *step):
            started[index].forget(allocation.workers(job) + step[0], allocation.ps(job) + step[1])
        offer(index)
    return allocation.decision()


def _rates(job: JobView) -> Values:
    """Epochs a second, ``[workers, servers]`` up to the caps."""
    if job.speed is None:
        raise ValueError(f"{job.job_id}: speeds on any tasks need Knowledge.EXACT")
    return np.array([[job.speed(w, p) for p in range(job.max_ps + 1)] for w in range(job.max_workers + 1)], float)


class _Wish:
    """What further tasks in this slot are worth to one job."""

    def __init__(self, job: JobView, rates: Values, slot_s: float, capacity: Resources) -> None:
        fastest, epochs = float(rates.max()), job.remaining_epochs
        self.job, self.best_s = job, epochs / fastest
        later_s = slot_s + (epochs - rates * slot_s) / fastest
        ends = rates * slot_s >= epochs
        self._left_s = np.where(ends, np.divide(epochs, rates, out=later_s.copy(), where=rates > 0), later_s)
        self._share = _shares(job, rates.shape, capacity)

    def best_step(self, workers: int, ps: int) -> tuple[float, tuple[int, int]]:
        """The largest gain, a share of the job's time for a share of the cluster, and the tasks that bring it."""
        saved_s = self._left_s[workers, ps] - self._left_s[workers:, ps:]
        gains = saved_s / self._share[: saved_s.shape[0], : saved_s.shape[1]] / self.best_s
        at = divmod(int(gains.argmax()), gains.shape[1])
        return float(gains[at]), at

    def forget(self, workers: int, ps: int) -> None:
        """These tasks, or more of both, found no room."""
        self._left_s[workers:, ps:] = np.inf


def _shares(job: JobView, shape: tuple[int, ...], capacity: Resources) -> Values:
    """Dominant shares by tasks; infinite for none, which are no step."""
    workers, ps = np.indices(shape)
    server = job.ps or NOTHING
    parts = [
        (workers * worker + ps * each) / there
        for worker, each, there in (
            (job.worker.cpu_milli, server.cpu_milli, capacity.cpu_milli),
            (job.worker.gpu_milli, server.gpu_milli, capacity.gpu_milli),
        )
        if there
    ]
    found: Values = np.max(parts, axis=0)
    return np.where(found > 0, found, np.inf)
