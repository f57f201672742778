"""Shortest remaining time first, preemptive; the time left is that of the job's request."""

from __future__ import annotations

from graphcost.sched.allocation import Allocation
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.view import Decision, JobView, SlotView


def remaining_s(job: JobView) -> float:
    """Seconds that the job still takes with what its user asked for; needs exact knowledge."""
    if job.speed is None:
        raise ValueError(f"{job.job_id}: the time left needs Knowledge.EXACT")
    speed = job.speed(job.requested_workers, job.requested_ps)
    return job.remaining_epochs / speed if speed > 0 else float("inf")


@register(
    "srtf",
    knows=Knowledge.EXACT,
    summary="least remaining time first, each job its request; later jobs fill the gaps",
    source="classical; remaining time, not the remaining fraction that DL2's release sorts by",
)
def srtf(view: SlotView, seed: int) -> Decision:
    """A job that does not fit whole keeps what fits, and the next one is tried."""
    allocation = Allocation(view)
    for job in sorted(view.jobs, key=lambda job: (remaining_s(job), job.order)):
        allocation.fill(job)
    return allocation.decision()
