"""Dominant resource fairness by progressive filling (Ghodsi et al., NSDI'11)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from graphcost.sched.allocation import Allocation
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.view import Decision, SlotView


@register(
    "drf",
    knows=Knowledge.NONE,
    summary="a bundle at a time to the job with the least dominant share",
    source="Ghodsi et al., NSDI'11; bundles of one worker and one server as in DL2 (arXiv 1909.06040)",
)
def drf(view: SlotView, seed: int) -> Decision:
    """A job leaves the race at its cap or when its next bundle fits nowhere; the others go on."""
    allocation = Allocation(view)
    waiting = [(0.0, job.order, index) for index, job in enumerate(view.jobs)]
    heapify(waiting)
    while waiting:
        _, order, index = heappop(waiting)
        job = view.jobs[index]
        if allocation.add_bundle(job):
            heappush(waiting, (allocation.dominant_share(job), order, index))
    return allocation.decision()
