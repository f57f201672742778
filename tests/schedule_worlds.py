"""Small worlds for tests of schedulers and of the simulator: speeds by formula, jobs in a line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphcost.sched import Resources, Tasks
from graphcost.sim import Disturbance, Job, Settings, SimCluster, TrainedModel, scalings
from graphcost.sim.speeds.base import can_train, check_known, counts_of

Rate = Callable[[int, int], float]
QUIET = Disturbance(measurement_noise=0.0)
SLOT_S = 100.0
SETTINGS = Settings(slot_s=SLOT_S, scaling=scalings().find("none"), disturbance=QUIET)


class Rates:
    """Samples per second by formula; placement does not matter."""

    name, note = "test", "test"

    def __init__(self, rates: Mapping[str, Rate]) -> None:
        self.rates = rates
        self.models = tuple(rates)

    def check(self, model: TrainedModel) -> None:
        check_known(model, self.models, self.name)

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        workers, ps = counts_of(tasks)
        return self.rates[model.name](workers, ps) if can_train(model, workers, ps) else 0.0

    def most_samples_per_s(self, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
        return self.rates[model.name](workers, ps) if can_train(model, workers, ps) else 0.0


def ring(name: str, cpus: float = 1, gpus: float = 1) -> TrainedModel:
    """An AllReduce model; one sample is one epoch."""
    return TrainedModel(name, 1.0, 1.0, Resources.of(cpus, gpus), None)


def served(name: str, cpus: float = 1, gpus: float = 1, ps_cpus: float = 1) -> TrainedModel:
    """The same with parameter servers."""
    return TrainedModel(name, 1.0, 1.0, Resources.of(cpus, gpus), Resources.of(ps_cpus, 0))


def job(job_id: str, model: TrainedModel, epochs: float, request: int, arrival_s: float = 0.0, cap: int = 0) -> Job:
    ps = request if model.ps is not None else 0
    cap = cap or request
    return Job(job_id, arrival_s, model, epochs, request, ps, cap, cap if ps else 0)
