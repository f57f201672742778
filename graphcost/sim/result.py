"""What a simulated schedule is: outcomes of jobs, slots, events, and the figures made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """One job's life; ``start_s`` and ``finish_s`` are None where it never came to that.

    ``scaling_s``: time lost to changes of its tasks; ``rescales``: how many there were.
    """

    job_id: str
    model: str
    arrival_s: float
    start_s: float | None
    finish_s: float | None
    epochs: float
    epochs_done: float
    rescales: int
    scaling_s: float

    @property
    def jct_s(self) -> float | None:
        """Job completion time: finish less arrival."""
        return None if self.finish_s is None else self.finish_s - self.arrival_s


@dataclass(frozen=True, slots=True)
class Event:
    """``kind``: arrive, start, scale, pause, resume or finish; tasks are those held afterwards."""

    time_s: float
    kind: str
    job_id: str
    workers: int = 0
    ps: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A job on unchanged tasks: ``nodes`` are those it lay on."""

    job_id: str
    start_s: float
    end_s: float
    workers: int
    ps: int
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SlotUse:
    """One slot. Shares are of the cluster's capacity and of the whole slot; ``reward`` is DL2's:
    the sum over jobs of the share of their epochs done in the slot."""

    slot: int
    start_s: float
    jobs: int
    running: int
    gpu_share: float
    cpu_share: float
    gpu_granted_share: float
    reward: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """Times in seconds; completion times (``jct``) of finished jobs, None where there is none.

    ``utilisation``: GPU time that jobs held until they finished or the slot ended, over all GPU
    time from first arrival to last finish; None without GPUs. ``mean_jct_whole_slots`` rounds every job up.
    """

    finished: int
    unfinished: int
    mean_jct_s: float | None
    p50_jct_s: float | None
    p95_jct_s: float | None
    max_jct_s: float | None
    makespan_s: float | None
    mean_wait_s: float | None
    utilisation: float | None
    cpu_utilisation: float | None
    mean_jct_slots: float | None
    mean_jct_whole_slots: float | None
    slots: int
    rescales: int
    scaling_s: float


METRICS = tuple(field.name for field in fields(Metrics))


@dataclass(frozen=True, slots=True)
class Schedule:
    """What came of one trace under one scheduler."""

    scheduler: str
    slot_s: float
    jobs: tuple[JobOutcome, ...]
    slots: tuple[SlotUse, ...]
    events: tuple[Event, ...]
    runs: tuple[Run, ...]
    metrics: Metrics


def metrics_of(
    outcomes: Sequence[JobOutcome], slot_s: float, slots: Sequence[SlotUse], *, has_gpus: bool, has_cpus: bool
) -> Metrics:
    """The figures of a schedule; percentiles interpolate linearly."""
    times = np.array([jct for job in outcomes if (jct := job.jct_s) is not None])
    first_s = min(job.arrival_s for job in outcomes)
    finishes = [job.finish_s for job in outcomes if job.finish_s is not None]
    last_s = max(finishes, default=None)
    waits = [job.start_s - job.arrival_s for job in outcomes if job.start_s is not None]
    whole = len(finishes) == len(outcomes)
    end_s = last_s if whole and last_s is not None else slots[-1].start_s + slot_s if slots else None
    span_s = end_s - first_s if end_s is not None else 0.0
    gpu = sum(use.gpu_share for use in slots) * slot_s
    cpu = sum(use.cpu_share for use in slots) * slot_s
    in_slots = times / slot_s
    return Metrics(
        finished=len(finishes),
        unfinished=len(outcomes) - len(finishes),
        mean_jct_s=_mean(times),
        p50_jct_s=float(np.percentile(times, 50)) if times.size else None,
        p95_jct_s=float(np.percentile(times, 95)) if times.size else None,
        max_jct_s=float(times.max()) if times.size else None,
        makespan_s=last_s - first_s if whole and last_s is not None else None,
        mean_wait_s=_mean(np.array(waits)),
        utilisation=gpu / span_s if has_gpus and slots and span_s else None,
        cpu_utilisation=cpu / span_s if has_cpus and slots and span_s else None,
        mean_jct_slots=_mean(in_slots),
        mean_jct_whole_slots=_mean(np.ceil(in_slots - 1e-9)),
        slots=len(slots),
        rescales=sum(job.rescales for job in outcomes),
        scaling_s=sum(job.scaling_s for job in outcomes),
    )


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None
