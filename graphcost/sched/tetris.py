"""Tetris: tasks that fit a node's free resources best, of jobs with little work left (Grandl et al., SIGCOMM'14).

score = alignment - epsilon * remaining time, epsilon = mean alignment / mean remaining time over the
candidates. The sign matters: DL2's release adds the second term, which prefers the job with most left.
"""

from __future__ import annotations

import numpy as np

from graphcost.sched.allocation import Allocation
from graphcost.sched.policy import Knowledge, register
from graphcost.sched.srtf import remaining_s
from graphcost.sched.view import Decision, JobView, SlotView


@register(
    "tetris",
    knows=Knowledge.EXACT,
    summary="node by node, the bundle that aligns best, less the job's remaining time",
    source="Grandl et al., SIGCOMM'14",
)
def tetris(view: SlotView, seed: int) -> Decision:
    """Each node is packed until no wanted bundle fits on it; a job takes up to its request."""
    allocation = Allocation(view)
    jobs = view.jobs
    left_s = np.array([min(remaining_s(job), 1e300) for job in jobs])
    bundles = [job.demand(1, job.bundle_ps) for job in jobs]
    capacity = np.array([view.capacity.cpu_milli, view.capacity.gpu_milli], float)
    shares = np.array([(b.cpu_milli, b.gpu_milli) for b in bundles], float).reshape(-1, 2)
    shares = np.divide(shares, capacity, out=np.zeros_like(shares), where=capacity > 0)
    wanted = [index for index, job in enumerate(jobs) if _wants(allocation, job)]
    for node in range(len(view.nodes)):
        while wanted:
            free = allocation.free(node)
            fitting = [index for index in wanted if bundles[index].fits_in(free)]
            if not fitting:
                break
            there = np.array([free.cpu_milli, free.gpu_milli], float)
            there = np.divide(there, capacity, out=np.zeros_like(there), where=capacity > 0)
            best = fitting[int(scores(shares[fitting] @ there, left_s[fitting]).argmax())]
            if not allocation.add(jobs[best], 1, jobs[best].bundle_ps, node=node) or not _wants(
                allocation, jobs[best]
            ):
                wanted.remove(best)
    return allocation.decision()


def scores(alignment: np.ndarray, left_s: np.ndarray) -> np.ndarray:
    """Alignment less the weighted remaining time; both terms weigh the same on average."""
    mean_s = left_s.mean()
    epsilon = alignment.mean() / mean_s if mean_s > 0 else 0.0
    result: np.ndarray = alignment - epsilon * left_s
    return result


def _wants(allocation: Allocation, job: JobView) -> bool:
    return allocation.workers(job) < min(job.requested_workers, job.max_workers)
