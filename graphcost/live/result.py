"""What a live run is: outcomes of jobs, slots as they were held; times in seconds since the run began."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """One job. ``steps_done``: each counted once, done again or not; ``losses``: of each of them, in order.

    ``resizes``: changes of its workers after its start, pauses among them; ``restarts``: groups that lost a worker.
    ``run_s``: time in steps. ``failed``: why it was given up.
    """

    job_id: str
    model: str
    steps: int
    steps_done: int
    most_workers: int
    resizes: int
    restarts: int
    arrival_slot: int
    start_s: float | None
    finish_s: float | None
    run_s: float
    failed: str | None
    losses: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GrantRun:
    """What a job held in a slot and the steps it did; ``ps`` are recorded, not run."""

    job_id: str
    workers: int
    ps: int
    steps: int


@dataclass(frozen=True, slots=True)
class SlotRun:
    """One slot by the clock."""

    slot: int
    start_s: float
    end_s: float
    held: tuple[GrantRun, ...]


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    """A whole run."""

    scheduler: str
    real_slot_s: float
    jobs: tuple[LiveOutcome, ...]
    slots: tuple[SlotRun, ...]

    @property
    def finished(self) -> int:
        """Jobs that did all their steps."""
        return sum(job.finish_s is not None for job in self.jobs)
