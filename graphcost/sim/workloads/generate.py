"""Jobs drawn from a declared workload; the same seed gives the same jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from graphcost.errors import UsageError
from graphcost.sim.jobs import Job, SimCluster, TrainedModel
from graphcost.sim.simulation import packed_epochs_per_s
from graphcost.sim.speeds import SpeedModel
from graphcost.sim.workloads.workload import Workload


def generate(
    workload: Workload, seed: int, speeds: SpeedModel, cluster: SimCluster, count: int | None = None
) -> tuple[Job, ...]:
    """``count`` jobs (the workload's own number by default); ``speeds`` turn lengths in time into epochs.

    Raises ``UsageError`` for a count or a seed below what can be.
    """
    count = workload.count if count is None else count
    if count < 1:
        raise UsageError(f"--count {count}: at least one job")
    if seed < 0:
        raise UsageError(f"--seed {seed}: a seed is 0 or more")
    arrivals, lengths, models = (np.random.default_rng((seed, purpose)) for purpose in range(3))
    slots = _arrival_slots(workload, arrivals)
    table = workload.lengths
    probabilities = np.array(table["probabilities"]) / sum(table["probabilities"])
    weights = np.array(workload.weights) / sum(workload.weights)
    width = len(str(count - 1))
    jobs = []
    for index in range(count):
        bucket = int(lengths.choice(len(probabilities), p=probabilities))
        by_weight = int(models.choice(len(weights), p=weights))
        model = workload.models[bucket if table["models"] == "by-bucket" else by_weight]
        minutes = float(table["mean_min"][bucket])
        if table["by"] == "epochs":
            epochs = minutes / table["longest_min"] * table["epochs_at_longest"]
        else:
            epochs = 60.0 * minutes * requested_epochs_per_s(workload, model, speeds, cluster)
        jobs.append(job_of(workload, f"job-{index:0{width}d}", next(slots) * workload.slot_s, model, epochs))
    return tuple(jobs)


def job_of(
    workload: Workload, job_id: str, arrival_s: float, model: TrainedModel, epochs: float, workers: int | None = None
) -> Job:
    """A job with the workload's caps; ``workers`` (and as many servers) in place of its usual request."""
    has_ps = model.ps is not None
    return Job(
        job_id=job_id,
        arrival_s=arrival_s,
        model=model,
        epochs=epochs,
        requested_workers=min(workers or workload.requested_workers, workload.max_workers),
        requested_ps=min(workers or workload.requested_ps, workload.max_ps) if has_ps else 0,
        max_workers=workload.max_workers,
        max_ps=workload.max_ps if has_ps else 0,
    )


def requested_epochs_per_s(
    workload: Workload, model: TrainedModel, speeds: SpeedModel, cluster: SimCluster, workers: int | None = None
) -> float:
    """Speed on the tasks that a user of ``model`` asks for."""
    job = job_of(workload, "", 0.0, model, 1.0, workers)
    return packed_epochs_per_s(speeds, model, job.requested_workers, job.requested_ps, cluster)


def _arrival_slots(workload: Workload, draw: np.random.Generator) -> Iterator[int]:
    """The slot of every job, without end."""
    table = workload.arrivals
    slot = 0
    offset = int(draw.integers(table["offsets"])) if table["pattern"] == "counts" else 0
    while True:
        if table["pattern"] == "counts":
            counts = table["counts"]
            arriving = math.ceil(counts[(slot + offset) % len(counts)] * table["max_per_slot"] / max(counts))
        elif table["pattern"] == "poisson":
            arriving = int(draw.poisson(table["mean_per_slot"]))
        else:
            arriving = int(draw.integers(table["max_per_slot"] + 1))
        yield from (slot for _ in range(arriving))
        slot += 1
