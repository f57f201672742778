"""Jobs and the nodes they run on, as the simulator holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphcost.errors import PlacementError, UsageError
from graphcost.sched import Resources


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What all jobs of one model share.

    ``batch``: samples of a step, of one worker where ``batch_grows`` (else workers split it).
    ``ps``: demand of one parameter server; None: AllReduce. ``noise_scale``: see ``JobView``.
    ``samples_per_epoch`` turns samples into the epochs that a job counts.
    """

    name: str
    batch: float
    samples_per_epoch: float
    worker: Resources
    ps: Resources | None
    batch_grows: bool = False
    noise_scale: float | None = None

    def efficiency(self, workers: int) -> float:
        """As ``JobView.efficiency``."""
        if self.noise_scale is None or not self.batch_grows:
            return 1.0
        return (self.noise_scale + self.batch) / (self.noise_scale + self.batch * workers)


@dataclass(frozen=True, slots=True)
class Job:
    """One training job. ``requested_*``: what its user asked for; ``max_*``: the most it may get."""

    job_id: str
    arrival_s: float
    model: TrainedModel
    epochs: float
    requested_workers: int
    requested_ps: int
    max_workers: int
    max_ps: int


@dataclass(frozen=True, slots=True)
class SimCluster:
    """The nodes, empty. Raises ``UsageError`` where there are none or they hold nothing."""

    nodes: tuple[Resources, ...]

    def __post_init__(self) -> None:
        if not self.nodes:
            raise UsageError("the cluster has 0 nodes; at least one runs jobs (--nodes)")
        if self.capacity == Resources(0, 0):
            raise UsageError(f"capacity 0: {len(self.nodes)} nodes without CPUs or GPUs")
        if any(node.cpu_milli < 0 or node.gpu_milli < 0 for node in self.nodes):
            raise UsageError("a node has a negative number of CPUs or GPUs")

    @classmethod
    def equal(cls, nodes: int, cpus: float, gpus: float) -> SimCluster:
        """Equal nodes."""
        return cls((Resources.of(cpus, gpus),) * nodes)

    @property
    def capacity(self) -> Resources:
        """All nodes together."""
        return Resources.total(self.nodes)


def checked(jobs: Sequence[Job], cluster: SimCluster, *, keep_oversized: bool = False) -> tuple[Job, ...]:
    """The jobs by arrival; caps cut to what the empty cluster holds. ``keep_oversized``: unless all are, as they are.

    Raises ``UsageError`` for no jobs, doubled ids or figures that cannot be, and
    ``PlacementError`` naming the jobs whose smallest set of tasks fits on no node.
    """
    if not jobs:
        raise UsageError("no jobs: nothing to schedule")
    seen: set[str] = set()
    for job in jobs:
        if job.job_id in seen:
            raise UsageError(f"job {job.job_id}: there are two of this id")
        seen.add(job.job_id)
        if not (job.epochs > 0 and job.arrival_s >= 0 and job.epochs < float("inf") and job.arrival_s < float("inf")):
            raise UsageError(
                f"job {job.job_id}: needs epochs over 0 and an arrival from 0 s on, "
                f"not {job.epochs:g} epochs at {job.arrival_s:g} s"
            )
        if (
            job.max_workers < 1
            or job.requested_workers < 1
            or (job.model.ps and min(job.max_ps, job.requested_ps) < 1)
        ):
            raise UsageError(f"job {job.job_id}: needs at least one worker, and one server where it trains with them")
    never = [job for job in jobs if not fits_somewhere(job, cluster)]
    if never and not (keep_oversized and len(never) < len(jobs)):
        _refuse(never, cluster)
    left_alone = {job.job_id for job in never}
    kinds: dict[tuple[Resources, Resources | None], tuple[int, int]] = {}
    for job in jobs:
        kind = (job.model.worker, job.model.ps)
        if kind not in kinds:
            kinds[kind] = most_tasks(*kind, cluster)
    cut = (job if job.job_id in left_alone else _within(job, *kinds[job.model.worker, job.model.ps]) for job in jobs)
    return tuple(sorted(cut, key=_by_arrival))


def _by_arrival(job: Job) -> float:
    return job.arrival_s


def fits_somewhere(job: Job, cluster: SimCluster) -> bool:
    """Whether some empty node holds the job's smallest set of tasks."""
    return any(_bundle(job.model).fits_in(node) for node in set(cluster.nodes))


def oversized_note(jobs: Sequence[Job], cluster: SimCluster) -> str | None:
    """A sentence on the jobs that no node holds; None where there is none."""
    never = [job.job_id for job in jobs if not fits_somewhere(job, cluster)]
    if not never:
        return None
    named = ", ".join(never[:3]) + (f" and {len(never) - 3} more" if len(never) > 3 else "")
    return f"{len(never):,} jobs need more than any node has and wait for ever: {named}"


def _refuse(never: Sequence[Job], cluster: SimCluster) -> None:
    largest = max(cluster.nodes, key=lambda node: (node.gpu_milli, node.cpu_milli))
    more = f", and {len(never) - 1} more jobs" if len(never) > 1 else ""
    tasks = "a worker and its parameter server need" if never[0].model.ps else "a worker needs"
    raise PlacementError(
        f"job {never[0].job_id} can never run: {tasks} {_bundle(never[0].model)}, the largest node has "
        f"{largest}{more}; give larger nodes (--cpus-per-node, --gpus-per-node), or let such jobs wait for ever "
        "beside others (--oversized queue)"
    )


def _bundle(model: TrainedModel) -> Resources:
    return model.worker if model.ps is None else model.worker + model.ps


def most_tasks(worker: Resources, ps: Resources | None, cluster: SimCluster) -> tuple[int, int]:
    """Workers alone, and servers alone, that the empty cluster holds."""

    def held(task: Resources, node: Resources) -> int:
        pairs = ((node.cpu_milli, task.cpu_milli), (node.gpu_milli, task.gpu_milli))
        return min((there // needed for there, needed in pairs if needed), default=1 << 20)

    workers = sum(held(worker, node) for node in cluster.nodes)
    return workers, 0 if ps is None else sum(held(ps, node) for node in cluster.nodes)


def _within(job: Job, workers: int, ps: int) -> Job:
    max_workers, max_ps = min(job.max_workers, workers), min(job.max_ps, ps)
    return replace(
        job,
        max_workers=max_workers,
        max_ps=max_ps,
        requested_workers=min(job.requested_workers, max_workers),
        requested_ps=min(job.requested_ps, max_ps),
    )
