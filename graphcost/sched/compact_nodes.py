"""Filling a cluster so that every job lies on as few nodes as the empty cluster would need.

AllReduce across servers can be many times slower than inside one, so that a task which would spread its job further
is worth less than none. Tasks are laid anew while others are added: nobody has moved before the slot begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.allocation import Allocation
from graphcost.sched.view import NOTHING, Increment, JobView, Resources, SlotView, Tasked, Tasks

Free = NDArray[np.int64]
"""``[2, nodes]``: thousandths of CPUs and of GPUs left."""


def fewest_nodes(model: Tasked, workers: int, ps: int, node: Resources) -> tuple[Tasks, ...]:
    """Tasks laid on equal nodes, each filled with pairs of worker and server, then with what is left.

    Where a node holds none of them (a demand that only another kind of node meets), all lie on one.
    """
    return _laid(model.worker, model.ps or NOTHING, workers, ps, node)


class CompactAllocation(Allocation):
    """Chooses nodes itself: the fullest that holds a job's tasks; where none does, all jobs anew, largest first.

    Nodes are taken to be equal to the first; where they are not, a job may lie on more than it would need.
    """

    def __init__(self, view: SlotView) -> None:
        super().__init__(view)
        self._wholes = np.array([(node.cpu_milli, node.gpu_milli) for node in view.nodes], np.float64).T
        self._by_id = {job.job_id: job for job in view.jobs}
        self._shut: set[tuple[Resources, Resources | None, int, int, int, int]] = set()

    def stays_compact(self, job: JobView, workers: int, ps: int) -> bool:
        """Whether so many more tasks can be held. What found no room once finds none later in the slot."""
        key = (job.worker, job.ps, *self._counts[job.job_id], workers, ps)
        if key in self._shut:
            return False
        held = self._held[job.job_id]
        beside = len(held) == 1 and job.demand(workers, ps).fits_in(self.free(next(iter(held))))
        if beside and len(self._pieces(job, workers, ps)) == 1:
            return True
        if self._placing(job, workers, ps) is None:
            self._shut.add(key)
            return False
        return True

    def add(self, job: JobView, workers: int = 0, ps: int = 0, *, node: int | None = None) -> bool:
        """Give more tasks, wherever that leaves every job compact, or none at all."""
        if node is not None:
            raise ValueError(f"node {node}: a compact allocation chooses its nodes itself")
        if workers < 0 or ps < 0 or not workers + ps or not self.within_caps(job, workers, ps):
            return False
        placed = self._placing(job, workers, ps)
        if placed is None:
            return False
        for job_id in placed:
            self._lift(job_id)
        for job_id, groups in placed.items():
            for where, tasks in groups:
                self._put(job_id, where, tasks)
        had = self._counts[job.job_id]
        self._counts[job.job_id] = (had[0] + workers, had[1] + ps)
        pairs = min(workers, ps)
        self._increments += [Increment(job.job_id, 1, 1)] * pairs
        self._increments += [Increment(job.job_id, 1, 0)] * (workers - pairs)
        self._increments += [Increment(job.job_id, 0, 1)] * (ps - pairs)
        return True

    def _pieces(self, job: JobView, workers: int = 0, ps: int = 0) -> tuple[Tasks, ...]:
        """What the job has, and so many more, by node."""
        had = self._counts[job.job_id]
        return fewest_nodes(job, had[0] + workers, had[1] + ps, self.view.nodes[0])

    def _placing(self, job: JobView, workers: int, ps: int) -> Mapping[str, list[tuple[int, Tasks]]] | None:
        """Groups of the jobs that lie anew: of this one alone where that will do; None: no room."""
        pieces, more = self._pieces(job, workers, ps), job.demand(workers, ps)
        if more.cpu_milli > self._free_of_all[0].sum() or more.gpu_milli > self._free_of_all[1].sum():
            return None
        free = self._free_of_all.copy()
        for node, (held_workers, held_ps) in self._held[job.job_id].items():
            free[:, node] += _milli(job.demand(held_workers, held_ps))
        alone = self._lay([(job, piece) for piece in pieces], free)
        if alone is not None:
            return alone
        mine = [(job, piece) for piece in pieces]
        for other_id in self._held:
            if other_id != job.job_id:
                other = self._by_id[other_id]
                mine += [(other, piece) for piece in self._pieces(other)]
        mine.sort(key=lambda each: -each[0].demand(each[1].workers, each[1].ps).dominant_share(self.view.capacity))
        return self._lay(mine, self._wholes.astype(np.int64))

    def _lay(
        self, pieces: Sequence[tuple[JobView, Tasks]], free: Free
    ) -> Mapping[str, list[tuple[int, Tasks]]] | None:
        """Each piece on the fullest node that holds it; takes from ``free``."""
        placed: dict[str, list[tuple[int, Tasks]]] = {}
        for job, piece in pieces:
            demand = _milli(job.demand(piece.workers, piece.ps))
            holds = (free[0] >= demand[0]) & (free[1] >= demand[1])
            if not holds.any():
                return None
            room = np.divide(free, self._wholes, out=np.zeros(free.shape), where=self._wholes > 0).sum(0)
            node = int(np.where(holds, room, np.inf).argmin())
            free[:, node] -= demand
            placed.setdefault(job.job_id, []).append((node, piece))
        return placed

    def _lift(self, job_id: str) -> None:
        job = self._by_id[job_id]
        for node, (workers, ps) in self._held[job_id].items():
            self._take(node, job.demand(workers, ps) * -1)
        self._held[job_id] = {}

    def _put(self, job_id: str, node: int, tasks: Tasks) -> None:
        self._take(node, self._by_id[job_id].demand(tasks.workers, tasks.ps))
        group = self._held[job_id].setdefault(node, [0, 0])
        group[0] += tasks.workers
        group[1] += tasks.ps


def _milli(demand: Resources) -> NDArray[np.int64]:
    return np.array((demand.cpu_milli, demand.gpu_milli), np.int64)


@lru_cache(maxsize=65536)
def _laid(worker: Resources, server: Resources, workers: int, ps: int, node: Resources) -> tuple[Tasks, ...]:
    placed: list[Tasks] = []
    left = [workers, ps]
    while sum(left):
        cpu, gpu = node.cpu_milli, node.gpu_milli
        put = [0, 0]
        progress = True
        while progress:
            progress = False
            for kind, task in enumerate((worker, server)):
                if put[kind] < left[kind] and task.cpu_milli <= cpu and task.gpu_milli <= gpu:
                    cpu, gpu, progress = cpu - task.cpu_milli, gpu - task.gpu_milli, True
                    put[kind] += 1
        if not sum(put):
            put = list(left)
        placed.append(Tasks(len(placed), *put))
        left = [left[0] - put[0], left[1] - put[1]]
    return tuple(placed)
