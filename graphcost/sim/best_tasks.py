"""How many workers and servers suit one model: every count within the caps, tried on the empty cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphcost.errors import PlacementError, UsageError
from graphcost.sim.jobs import SimCluster, TrainedModel
from graphcost.sim.speeds import SpeedModel


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """``samples_per_s`` with these tasks on the placement that suits them best.

    ``efficiency``: that speed a worker, over the speed of one worker with as many servers as suit it.
    """

    workers: int
    ps: int
    samples_per_s: float
    efficiency: float


@dataclass(frozen=True, slots=True)
class TaskAdvice:
    """``by_workers``: for each number of workers the servers that suit it best, the fewest at a tie.

    ``fastest``: the highest speed; ``enough``: the fewest tasks within ``slack`` of it.
    """

    model: str
    speeds: str
    by_workers: tuple[TaskCounts, ...]
    fastest: TaskCounts
    enough: TaskCounts
    slack: float


def advise_tasks(
    speeds: SpeedModel, model: TrainedModel, cluster: SimCluster, max_workers: int, max_ps: int, slack: float = 0.1
) -> TaskAdvice:
    """Raises ``UsageError`` for caps below one, ``PlacementError`` where the cluster holds not even one worker."""
    if max_workers < 1 or max_ps < 1:
        raise UsageError(f"--max-workers {max_workers}, --max-ps {max_ps}: at least one of each")
    if not 0 <= slack < 1:
        raise UsageError(f"--slack {slack:g}: a share from 0 to below 1")
    speeds.check(model)
    tried = list(_tried(speeds, model, cluster, max_workers, max_ps))
    if not tried:
        raise PlacementError(f"{model.name}: not even one worker fits the cluster of {cluster.capacity}")
    best: dict[int, tuple[int, float]] = {}
    for workers, ps, rate in tried:
        if workers not in best or rate > best[workers][1]:
            best[workers] = (ps, rate)
    one = best[1][1]
    by_workers = tuple(TaskCounts(w, ps, rate, rate / w / one) for w, (ps, rate) in best.items())
    fastest = max(by_workers, key=lambda row: row.samples_per_s)
    near = [(w + ps, w, ps, rate) for w, ps, rate in tried if rate >= (1 - slack) * fastest.samples_per_s]
    _, workers, ps, rate = min(near)
    enough = TaskCounts(workers, ps, rate, rate / workers / one)
    return TaskAdvice(model.name, speeds.name, by_workers, fastest, enough, slack)


def _tried(
    speeds: SpeedModel, model: TrainedModel, cluster: SimCluster, max_workers: int, max_ps: int
) -> Iterator[tuple[int, int, float]]:
    """Counts that the empty cluster holds, and their speeds."""
    for workers in range(1, max_workers + 1):
        for ps in range(1, max_ps + 1) if model.ps is not None else (0,):
            demand = model.worker * workers if model.ps is None else model.worker * workers + model.ps * ps
            if demand.fits_in(cluster.capacity):
                yield workers, ps, speeds.most_samples_per_s(model, workers, ps, cluster)
