"""The per-job optimum: every job alone on the empty cluster, on the tasks that suit it best.

No schedule finishes a job sooner, so its mean is a bound for every scheduler; it is reachable only while
the cluster is not full. Speed variation is that of the job's own slots; interference, scaling and
waiting behind others are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcost.sim.jobs import Job, SimCluster, TrainedModel, checked, fits_somewhere
from graphcost.sim.result import JobOutcome, Metrics, metrics_of
from graphcost.sim.simulation import Settings, first_slot
from graphcost.sim.speeds import SpeedModel


def best_epochs_per_s(
    speeds: SpeedModel, model: TrainedModel, max_workers: int, max_ps: int, cluster: SimCluster
) -> tuple[float, int, int]:
    """The highest speed over all counts within the caps that the empty cluster holds, and those counts."""
    best = (0.0, 0, 0)
    for workers in range(1, max_workers + 1):
        for ps in range(1, max_ps + 1) if model.ps is not None else (0,):
            demand = model.worker * workers + (model.ps * ps if model.ps is not None else model.worker * 0)
            if not demand.fits_in(cluster.capacity):
                break
            rate = speeds.most_samples_per_s(model, workers, ps, cluster)
            epochs_per_s = rate * model.efficiency(workers) / model.samples_per_epoch
            if epochs_per_s > best[0]:
                best = (epochs_per_s, workers, ps)
    return best


def per_job_optimum(
    jobs: Sequence[Job], cluster: SimCluster, speeds: SpeedModel, settings: Settings | None = None
) -> tuple[tuple[JobOutcome, ...], Metrics]:
    """Outcomes no schedule can beat, and their figures; its utilisation is not defined."""
    settings = settings or Settings()
    best: dict[tuple[str, int, int], float] = {}
    outcomes = []
    for job in checked(jobs, cluster, keep_oversized=settings.queue_oversized):
        if not fits_somewhere(job, cluster):
            outcomes.append(
                JobOutcome(job.job_id, job.model.name, job.arrival_s, None, None, job.epochs, 0.0, 0, 0.0)
            )
            continue
        key = (job.model.name, job.max_workers, job.max_ps)
        if key not in best:
            best[key], _, _ = best_epochs_per_s(speeds, job.model, job.max_workers, job.max_ps, cluster)
        slot = first = first_slot(job, settings.slot_s)
        left, finish_s = job.epochs, None
        while slot - first < settings.max_slots:
            rate = best[key] * settings.disturbance.speed_factor(job.job_id, slot)
            if rate * settings.slot_s >= left * (1 - 1e-12):
                finish_s = slot * settings.slot_s + left / rate
                break
            left -= rate * settings.slot_s
            slot += 1
        outcomes.append(
            JobOutcome(
                job.job_id, job.model.name, job.arrival_s, first * settings.slot_s, finish_s, job.epochs,
                job.epochs if finish_s is not None else job.epochs - left, 0, 0.0,
            )
        )  # fmt: skip
    metrics = metrics_of(outcomes, settings.slot_s, (), has_gpus=False, has_cpus=False)
    return tuple(outcomes), metrics
