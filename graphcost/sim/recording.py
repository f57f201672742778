"""What a simulation leaves behind: events, runs and the use of every slot."""

from __future__ import annotations

from collections.abc import Sequence

from graphcost.sched import Grant, Resources
from graphcost.sim.jobs import Job
from graphcost.sim.result import Event, JobOutcome, Run, Schedule, SlotUse, metrics_of


class Recorder:
    """Collects while slots run. Runs of unchanged tasks are joined across slots."""

    def __init__(self, capacity: Resources, slot_s: float) -> None:
        self._capacity, self._slot_s = capacity, slot_s
        self._events: list[Event] = []
        self._slots: list[SlotUse] = []
        self._runs: list[Run] = []
        self._open: dict[str, Run] = {}

    def event(self, time_s: float, kind: str, job_id: str, workers: int = 0, ps: int = 0) -> None:
        """Something happened to a job."""
        self._events.append(Event(time_s, kind, job_id, workers, ps))

    def begin(self, slot: int, start_s: float, jobs: int) -> None:
        """A slot starts."""
        self._slot, self._start_s, self._jobs, self._running = slot, start_s, jobs, 0
        self._gpu_milli_s = self._cpu_milli_s = self._granted_gpu_milli = 0.0

    def ran(
        self,
        job: Job,
        grant: Grant,
        start_s: float,
        end_s: float,
        before: tuple[int, int],
        *,
        first: bool,
        finished: bool,
    ) -> None:
        """A job held its tasks from ``start_s`` to ``end_s``; ``before``: what it held in the last slot."""
        workers, ps = grant.workers, grant.ps
        if (workers, ps) != before:
            kind = "start" if first else "scale" if sum(before) else "resume"
            self.event(start_s, kind, job.job_id, workers, ps)
        demand = job.model.worker * workers
        if job.model.ps is not None:
            demand += job.model.ps * ps
        self._running += 1
        self._granted_gpu_milli += demand.gpu_milli
        self._gpu_milli_s += demand.gpu_milli * (end_s - start_s)
        self._cpu_milli_s += demand.cpu_milli * (end_s - start_s)
        nodes = tuple(group.node for group in grant.tasks)
        last = self._open.get(job.job_id)
        if last is not None and (last.workers, last.ps, last.nodes, last.end_s) == (workers, ps, nodes, start_s):
            self._open[job.job_id] = Run(job.job_id, last.start_s, end_s, workers, ps, nodes)
        else:
            self._close(job.job_id)
            self._open[job.job_id] = Run(job.job_id, start_s, end_s, workers, ps, nodes)
        if finished:
            self.event(end_s, "finish", job.job_id)
            self._close(job.job_id)

    def stopped(self, job_id: str, time_s: float, *, paused: bool) -> None:
        """A job has no tasks in this slot."""
        if paused:
            self.event(time_s, "pause", job_id)
        self._close(job_id)

    def end(self, reward: float) -> None:
        """The slot is over."""
        gpus, cpus = self._capacity.gpu_milli, self._capacity.cpu_milli
        self._slots.append(
            SlotUse(
                slot=self._slot,
                start_s=self._start_s,
                jobs=self._jobs,
                running=self._running,
                gpu_share=self._gpu_milli_s / (gpus * self._slot_s) if gpus else 0.0,
                cpu_share=self._cpu_milli_s / (cpus * self._slot_s) if cpus else 0.0,
                gpu_granted_share=self._granted_gpu_milli / gpus if gpus else 0.0,
                reward=reward,
            )
        )

    def schedule(
        self,
        scheduler: str,
        states: Sequence[tuple[Job, float | None, float | None, float, int, float]],
    ) -> Schedule:
        """Everything so far; a row: job, start, finish, remaining epochs, rescales, seconds lost to them."""
        outcomes = tuple(
            JobOutcome(
                job_id=job.job_id,
                model=job.model.name,
                arrival_s=job.arrival_s,
                start_s=start_s,
                finish_s=finish_s,
                epochs=job.epochs,
                epochs_done=job.epochs - remaining,
                rescales=rescales,
                scaling_s=scaling_s,
            )
            for job, start_s, finish_s, remaining, rescales, scaling_s in states
        )
        gpus, cpus = self._capacity.gpu_milli > 0, self._capacity.cpu_milli > 0
        return Schedule(
            scheduler=scheduler,
            slot_s=self._slot_s,
            jobs=outcomes,
            slots=tuple(self._slots),
            events=tuple(sorted(self._events, key=lambda event: event.time_s)),
            runs=tuple(sorted((*self._runs, *self._open.values()), key=lambda run: (run.start_s, run.job_id))),
            metrics=metrics_of(outcomes, self._slot_s, self._slots, has_gpus=gpus, has_cpus=cpus),
        )

    def _close(self, job_id: str) -> None:
        run = self._open.pop(job_id, None)
        if run is not None:
            self._runs.append(run)
