"""How fast a job trains on given tasks: what every speed model answers."""

from __future__ import annotations

from typing import Protocol

from graphcost.errors import UnknownNameError, UsageError
from graphcost.registry import did_you_mean
from graphcost.sched import Tasks
from graphcost.sim.jobs import SimCluster, TrainedModel


class SpeedModel(Protocol):
    """What the simulator asks of any source of speeds."""

    @property
    def name(self) -> str:
        """As ``--speeds`` takes it."""
        ...

    @property
    def note(self) -> str:
        """Where the speeds are from."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Models known by name; empty where any that can be read will do."""
        ...

    def check(self, model: TrainedModel) -> None:
        """Raise ``UsageError`` (or ``UnknownNameError``) if there is no speed for ``model``."""
        ...

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        """All workers together; 0 without a worker, or without a server where the model needs one."""
        ...

    def most_samples_per_s(self, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
        """No placement of so many tasks is faster."""
        ...


def counts_of(tasks: tuple[Tasks, ...]) -> tuple[int, int]:
    """Workers and parameter servers."""
    return sum(group.workers for group in tasks), sum(group.ps for group in tasks)


def can_train(model: TrainedModel, workers: int, ps: int) -> bool:
    """Whether such tasks make progress at all."""
    return workers > 0 and (model.ps is None or ps > 0)


def check_known(model: TrainedModel, known: tuple[str, ...], speeds: str) -> None:
    """Raise ``UnknownNameError`` for a model that ``speeds`` does not know."""
    if model.name not in known:
        raise UnknownNameError(
            f"{speeds} speeds have no model named {model.name!r}{did_you_mean(model.name, known)} "
            f"(known: {', '.join(known)})"
        )


def check_served(model: TrainedModel, speeds: str) -> None:
    """Raise ``UsageError`` where ``speeds`` hold with parameter servers and ``model`` trains without."""
    if model.ps is None:
        raise UsageError(f"{speeds} speeds hold with parameter servers; {model.name} trains without (--arch ps)")
