"""Whether an answer can be: no more than the nodes have, within the jobs' caps, for jobs that are there.

A scheduler that breaks this is defective, hence ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcost.sched import Grant, Resources
from graphcost.sim.jobs import Job, SimCluster


def check_grants(grants: Sequence[Grant], jobs: Mapping[str, Job], cluster: SimCluster) -> None:
    """Raises ``ValueError`` naming the first job or node that does not hold."""
    used: dict[int, Resources] = {}
    seen: set[str] = set()
    for grant in grants:
        job = jobs.get(grant.job_id)
        if job is None or grant.job_id in seen:
            raise ValueError(f"a grant for {grant.job_id!r}, which {'has one' if job else 'is no unfinished job'}")
        seen.add(grant.job_id)
        if grant.workers > job.max_workers or grant.ps > job.max_ps:
            raise ValueError(
                f"{grant.job_id}: {grant.workers} workers and {grant.ps} servers, over its caps of "
                f"{job.max_workers} and {job.max_ps}"
            )
        for group in grant.tasks:
            if not 0 <= group.node < len(cluster.nodes) or group.workers < 0 or group.ps < 0:
                raise ValueError(f"{grant.job_id}: {group} is no group of tasks on a node")
            demand = job.model.worker * group.workers
            if group.ps and job.model.ps is None:
                raise ValueError(f"{grant.job_id}: parameter servers for a job without them")
            if job.model.ps is not None:
                demand += job.model.ps * group.ps
            used[group.node] = used.get(group.node, Resources(0, 0)) + demand
    for node, demand in used.items():
        if not demand.fits_in(cluster.nodes[node]):
            raise ValueError(f"node {node}: {demand} granted, it has {cluster.nodes[node]}")
