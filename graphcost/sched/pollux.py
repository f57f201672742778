"""Elastic shares by goodput, in the manner of Pollux (Qiao et al., OSDI'21).

Maximises the mean of power -1 of the jobs' speedups, speedup = goodput / goodput at a fair share,
goodput = throughput * statistical efficiency; throughput is fitted to noisy measurements. Replicas grow along
one axis: a worker, with a parameter server where the job needs one. Unlike Pollux: increments in place of a
genetic search, the batch follows the workers, no penalty for a change, no avoidance of interference.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from graphcost.sched.allocation import Allocation
from graphcost.sched.estimate import SpeedEstimate
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.view import Decision, JobView, SlotView, Speed


@register(
    "pollux",
    knows=Knowledge.SAMPLES,
    summary="replicas that raise the harmonic mean of speedups in goodput; no remaining work needed",
    source="Qiao et al., OSDI'21, simplified (see the module)",
)
def pollux(view: SlotView, seed: int) -> Decision:
    """Every job one replica in order of arrival, then the replica that lowers the sum of 1/speedup most."""
    allocation = Allocation(view)
    goodput: dict[str, Speed] = {
        job.job_id: SpeedEstimate(job, view.observations.get(job.model, ())) for job in view.jobs
    }
    fair = {job.job_id: _at(goodput[job.job_id], job, fair_replicas(view, job)) for job in view.jobs}
    started = [job for job in view.jobs if allocation.add_bundle(job)]

    def gain(job: JobView) -> float:
        """What one more replica takes off 1/speedup."""
        have = allocation.workers(job)
        now, then = _at(goodput[job.job_id], job, have), _at(goodput[job.job_id], job, have + 1)
        return fair[job.job_id] * (1 / now - 1 / then) if now > 0 and then > 0 else 0.0

    offers = [(-gain(job), job.order, index) for index, job in enumerate(started)]
    heapify(offers)
    while offers:
        worth, order, index = heappop(offers)
        job = started[index]
        if worth < 0 and allocation.add_bundle(job):
            heappush(offers, (-gain(job), order, index))
    return allocation.decision()


def fair_replicas(view: SlotView, job: JobView) -> int:
    """An equal share of the cluster in replicas of this job, at least one."""
    share = job.demand(1, job.bundle_ps).dominant_share(view.capacity)
    return max(1, min(job.max_workers, int(1 / (share * len(view.jobs))) if share else job.max_workers))


def _at(speed: Speed, job: JobView, replicas: int) -> float:
    return speed(replicas, replicas if job.ps is not None else 0)
