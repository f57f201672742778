"""Filling a cluster task by task: every scheduler answers through this, so none can over-allocate."""

from __future__ import annotations

import numpy as np

from graphcost.sched.view import Decision, Grant, Increment, JobView, Resources, SlotView, Tasks


class Allocation:
    """The slot's nodes being filled. A misfit changes nothing and returns False.

    Nodes are chosen as a cluster's default scheduler does: those that already run the job
    first, then the least loaded (sum of the used shares), the lowest number at a tie.
    """

    def __init__(self, view: SlotView) -> None:
        self.view = view
        # Twice the same figures: lists for single nodes, an array for the search over all of them.
        self._free = [[node.cpu_milli, node.gpu_milli] for node in view.nodes]
        self._free_of_all = np.array(self._free, np.int64).reshape(-1, 2).T.copy()
        self._load = np.zeros(len(view.nodes))
        self._held: dict[str, dict[int, list[int]]] = {job.job_id: {} for job in view.jobs}
        self._counts: dict[str, tuple[int, int]] = {job.job_id: (0, 0) for job in view.jobs}
        self._increments: list[Increment] = []

    def workers(self, job: JobView) -> int:
        """Workers given so far."""
        return self._counts[job.job_id][0]

    def ps(self, job: JobView) -> int:
        """Parameter servers given so far."""
        return self._counts[job.job_id][1]

    def dominant_share(self, job: JobView) -> float:
        """The job's largest share of any resource of the whole cluster."""
        return job.demand(*self._counts[job.job_id]).dominant_share(self.view.capacity)

    def free(self, node: int) -> Resources:
        """What is left on a node."""
        return Resources(*self._free[node])

    def least_loaded(self) -> int:
        """The node with the least load, whether or not anything fits there."""
        return int(self._load.argmin())

    def within_caps(self, job: JobView, workers: int, ps: int) -> bool:
        """Whether the job may have so many more tasks."""
        if ps and job.ps is None:
            return False
        return self.workers(job) + workers <= job.max_workers and self.ps(job) + ps <= job.max_ps

    def has_room(self, demand: Resources) -> bool:
        """Whether some node still holds such tasks."""
        room = (self._free_of_all[0] >= demand.cpu_milli) & (self._free_of_all[1] >= demand.gpu_milli)
        return bool(room.any())

    def add(self, job: JobView, workers: int = 0, ps: int = 0, *, node: int | None = None) -> bool:
        """Give more tasks, all on one node (``node``, else the best that has room), or none at all."""
        if workers < 0 or ps < 0 or not workers + ps or not self.within_caps(job, workers, ps):
            return False
        demand = job.demand(workers, ps)
        chosen = self._node_for(job, demand) if node is None else node if demand.fits_in(self.free(node)) else None
        if chosen is None:
            return False
        self._take(chosen, demand)
        group = self._held[job.job_id].setdefault(chosen, [0, 0])
        group[0] += workers
        group[1] += ps
        had = self._counts[job.job_id]
        self._counts[job.job_id] = (had[0] + workers, had[1] + ps)
        self._increments.append(Increment(job.job_id, workers, ps))
        return True

    def add_bundle(self, job: JobView) -> bool:
        """One worker with one parameter server beside it; a worker alone for AllReduce."""
        return self.add(job, 1, job.bundle_ps)

    def fill(self, job: JobView) -> bool:
        """Bundles until the job has what its user asked for; False where something did not fit."""
        while True:
            workers = int(self.workers(job) < job.requested_workers)
            ps = int(self.ps(job) < job.requested_ps)
            if not workers + ps:
                return True
            if not self.add(job, workers, ps):
                return False

    def decision(self) -> Decision:
        """The answer: jobs in order of arrival, nodes in order of number."""
        grants = tuple(
            Grant(job_id, tuple(Tasks(node, *held[node]) for node in sorted(held)))
            for job_id, held in self._held.items()
            if held
        )
        return Decision(grants, tuple(self._increments))

    def _node_for(self, job: JobView, demand: Resources) -> int | None:
        cpu, gpu, free = demand.cpu_milli, demand.gpu_milli, self._free
        own = [node for node in self._held[job.job_id] if free[node][0] >= cpu and free[node][1] >= gpu]
        if own:
            return min(own, key=lambda node: (self._load[node], node))
        room = (self._free_of_all[0] >= cpu) & (self._free_of_all[1] >= gpu)
        if not room.any():
            return None
        return int(np.where(room, self._load, np.inf).argmin())

    def _take(self, node: int, demand: Resources) -> None:
        free, whole = self._free[node], self.view.nodes[node]
        free[0] -= demand.cpu_milli
        free[1] -= demand.gpu_milli
        self._free_of_all[:, node] = free
        pairs = ((free[0], whole.cpu_milli), (free[1], whole.gpu_milli))
        self._load[node] = sum(1 - left / there for left, there in pairs if there)
