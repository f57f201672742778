"""First in, first out: each job what its user asked for, in order of arrival; the first that does not fit blocks."""

from __future__ import annotations

from graphcost.sched.allocation import Allocation
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.view import Decision, SlotView


@register(
    "fifo",
    knows=Knowledge.NONE,
    summary="by arrival, each job its request; stops at the first that does not fit",
    source="classical; as a teacher in Peng et al., DL2 (arXiv 1909.06040)",
)
def fifo(view: SlotView, seed: int) -> Decision:
    """Head-of-line blocking included. Jobs are elastic: the first that does not fit whole runs on what is left."""
    allocation = Allocation(view)
    for job in view.jobs:
        if not allocation.fill(job):
            break
    return allocation.decision()
