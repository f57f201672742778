"""What a trace asks of the cluster, before it is run: the load, and arrivals stretched to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphcost.errors import UsageError
from graphcost.sim.jobs import Job, SimCluster
from graphcost.sim.simulation import packed_epochs_per_s
from graphcost.sim.speeds import SpeedModel


@dataclass(frozen=True, slots=True)
class Load:
    """Demand of all jobs on their requested tasks over what the cluster has while they arrive.

    ``span_s``: from the first to the last arrival, and one slot. A share over 1 must queue.
    """

    gpu_share: float
    cpu_share: float
    span_s: float

    @property
    def share(self) -> float:
        """Of the scarcer resource."""
        return max(self.gpu_share, self.cpu_share)


def offered_load(jobs: Sequence[Job], cluster: SimCluster, speeds: SpeedModel, slot_s: float) -> Load:
    """The load of ``jobs``."""
    arrivals = [job.arrival_s for job in jobs]
    span_s = max(arrivals) - min(arrivals) + slot_s
    capacity = cluster.capacity
    gpu = cpu = 0.0
    for job in jobs:
        speed = packed_epochs_per_s(speeds, job.model, job.requested_workers, job.requested_ps, cluster)
        demand = job.model.worker * job.requested_workers
        if job.model.ps is not None:
            demand += job.model.ps * job.requested_ps
        gpu += demand.gpu_milli * job.epochs / speed
        cpu += demand.cpu_milli * job.epochs / speed
    return Load(
        gpu_share=gpu / (capacity.gpu_milli * span_s) if capacity.gpu_milli else 0.0,
        cpu_share=cpu / (capacity.cpu_milli * span_s) if capacity.cpu_milli else 0.0,
        span_s=span_s,
    )


def stretched(jobs: Sequence[Job], load: Load, share: float, slot_s: float) -> tuple[Job, ...]:
    """The same jobs with arrivals moved apart, or together, until the load is ``share``.

    Raises ``UsageError`` where even arrivals at once do not reach it.
    """
    before_s, after_s = load.span_s - slot_s, load.span_s * load.share / share - slot_s
    if before_s <= 0 or after_s < 0:
        raise UsageError(
            f"--load {share:.0%}: these {len(jobs)} jobs load the cluster to "
            f"{load.share * load.span_s / slot_s:.0%} even if all arrive at once"
            if before_s > 0
            else f"--load {share:.0%}: all jobs arrive at once, nothing can be moved"
        )
    first_s = min(job.arrival_s for job in jobs)
    return tuple(replace(job, arrival_s=first_s + (job.arrival_s - first_s) * after_s / before_s) for job in jobs)
