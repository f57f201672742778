"""Optimus's placement: few nodes a job, its workers and servers spread evenly over them.

Jobs with the fewest tasks go first; each takes the smallest number of most-free nodes that holds it.
Source: Peng et al., EuroSys'18, section on task placement.
"""

from __future__ import annotations

from dataclasses import replace

from graphcost.sched.view import Decision, Grant, JobView, Resources, SlotView, Tasks


def packed_on_few_nodes(view: SlotView, decision: Decision) -> Decision | None:
    """The same counts placed anew; None where this order does not hold them all."""
    jobs = {job.job_id: job for job in view.jobs}
    free = [(node.cpu_milli, node.gpu_milli) for node in view.nodes]
    placed: dict[str, Grant] = {}
    for grant in sorted(decision.grants, key=lambda one: (one.workers + one.ps, jobs[one.job_id].order)):
        tasks = _place(jobs[grant.job_id], grant.workers, grant.ps, free, view.capacity)
        if tasks is None:
            return None
        placed[grant.job_id] = Grant(grant.job_id, tasks)
    return replace(decision, grants=tuple(placed[grant.job_id] for grant in decision.grants))


def _place(
    job: JobView, workers: int, ps: int, free: list[tuple[int, int]], capacity: Resources
) -> tuple[Tasks, ...] | None:
    """Takes from ``free``; None where no number of nodes does."""
    order = sorted(range(len(free)), key=lambda node: (-_room(free[node], capacity), node))
    for count in range(1, min(len(order), workers + ps) + 1):
        tasks = []
        for position, node in enumerate(order[:count]):
            group = Tasks(node, _part(workers, count, position), _part(ps, count, count - 1 - position))
            if not job.demand(group.workers, group.ps).fits_in(Resources(*free[node])):
                break
            tasks.append(group)
        else:
            for group in tasks:
                demand = job.demand(group.workers, group.ps)
                cpu, gpu = free[group.node]
                free[group.node] = (cpu - demand.cpu_milli, gpu - demand.gpu_milli)
            return tuple(sorted((group for group in tasks if group.workers + group.ps), key=lambda group: group.node))
    return None


def _part(total: int, parts: int, position: int) -> int:
    """An even split; the first ``total % parts`` positions get one more."""
    return total // parts + (position < total % parts)


def _room(free: tuple[int, int], capacity: Resources) -> float:
    pairs = ((free[0], capacity.cpu_milli), (free[1], capacity.gpu_milli))
    return sum(there / whole for there, whole in pairs if whole)
