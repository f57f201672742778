"""A schedule carried out: slot by slot the scheduler is asked as in the simulator, and its answer is run for real.

What it sees of a job (demands, caps, epochs) is the workload's; what remains follows from the steps that were done.
One machine trains by all-reduce alone: a grant's workers are processes, its parameter servers are held and recorded,
as in the simulator, but not run. Nodes are those of the scheduler's cluster; where processes lie is Ray's to choose.
Measured speeds, for schedulers that know them, are those of trials and slots here; exact ones are the setup's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graphcost.errors import UsageError
from graphcost.live.engine import Engine
from graphcost.live.jobs import LiveJob, LiveOptions, Progress
from graphcost.live.result import GrantRun, LiveOutcome, LiveSchedule, SlotRun
from graphcost.sched import Grant, JobView, Knowledge, Observation, Scheduler, SlotView
from graphcost.sim.checks import check_grants
from graphcost.sim.jobs import Job, SimCluster, fits_somewhere, most_tasks
from graphcost.sim.setup import Setup
from graphcost.sim.simulation import first_slot, packed_epochs_per_s

TRIALS = (1, 2, 4)
"""assumed: workers that a model is tried on before its first job, for schedulers that know measured speeds."""


def live_jobs(jobs: Sequence[Job], seed: int, options: LiveOptions) -> dict[str, LiveJob]:
    """What each job trains: steps in proportion to its epochs, the longest ``options.steps``.

    Raises ``UsageError`` where a step has fewer samples than a job may have workers.
    """
    most = max(job.max_workers for job in jobs)
    if options.batch < most:
        raise UsageError(f"--batch {options.batch}: a job may have {most} workers, each needs a sample")
    longest = max(job.epochs for job in jobs)
    return {
        job.job_id: LiveJob(
            job.job_id, seed * 10_000 + order, max(1, round(options.steps * job.epochs / longest)), options.batch
        )
        for order, job in enumerate(jobs)
    }


@dataclass(slots=True)
class _State:
    """What changes about a job."""

    job: Job
    order: int
    live: LiveJob
    steps_done: int = 0
    workers: int = 0
    ps: int = 0
    most_workers: int = 0
    resizes: int = 0
    restarts: int = 0
    run_s: float = 0.0
    start_s: float | None = None
    finish_s: float | None = None
    failed: str | None = None

    @property
    def over(self) -> bool:
        return self.finish_s is not None or self.failed is not None


@dataclass(slots=True)
class LiveRun:
    """One run; ``clock`` in seconds. Ask it for ``schedule()``."""

    jobs: Sequence[Job]
    live: dict[str, LiveJob]
    setup: Setup
    scheduler: Scheduler
    engine: Engine
    options: LiveOptions
    seed: int
    clock: Callable[[], float]
    _measured: dict[str, dict[tuple[int, int], Observation]] = field(default_factory=dict)

    def schedule(self) -> LiveSchedule:
        """Run it to the end, or to the last slot."""
        states = [_State(job, order, self.live[job.job_id]) for order, job in enumerate(self.jobs)]
        slots: list[SlotRun] = []
        begin_s, slot = self.clock(), 0
        while len(slots) < self.options.slots:
            waiting = [state for state in states if not state.over and fits_somewhere(state.job, self.setup.cluster)]
            if not waiting:
                break
            slot = max(slot, min(first_slot(state.job, self.setup.slot_s) for state in waiting))
            active = [state for state in waiting if first_slot(state.job, self.setup.slot_s) <= slot]
            slots.append(self._slot(slot, active, begin_s))
            slot += 1
        outcomes = tuple(self._outcome(state) for state in states)
        return LiveSchedule(self.scheduler.name, self.options.real_slot_s, outcomes, tuple(slots))

    def _slot(self, slot: int, active: Sequence[_State], begin_s: float) -> SlotRun:
        by_id = {state.job.job_id: state for state in active}
        if self.scheduler.knows is Knowledge.SAMPLES:
            for state in active:
                self._try_out(state)
        grants = self.scheduler.decide(self._view(slot, active), self.seed).grants
        check_grants(grants, {name: state.job for name, state in by_id.items()}, self.setup.cluster)
        granted = {grant.job_id: grant for grant in grants}
        start_s = self.clock()
        for name, state in by_id.items():
            _hold(state, granted.get(name), start_s - begin_s)
        progress = self.engine.run_slot({name: state.workers for name, state in by_id.items()})
        for name, state in by_id.items():
            self._advance(state, progress[name], begin_s)
        held = tuple(
            GrantRun(name, state.workers, state.ps, progress[name].steps)
            for name, state in by_id.items()
            if state.workers or state.ps
        )
        return SlotRun(slot, start_s - begin_s, self.clock() - begin_s, held)

    def _advance(self, state: _State, progress: Progress, begin_s: float) -> None:
        state.steps_done, state.failed = progress.steps_done, progress.failed
        state.run_s += progress.run_s
        state.restarts += progress.restarts
        if progress.finish_s is not None:
            state.finish_s = progress.finish_s - begin_s
        if progress.run_s > 0 and self.scheduler.knows is Knowledge.SAMPLES:
            rate = state.live.batch * progress.steps / progress.run_s
            self._observe(state.job.model.name, state.workers, state.ps, rate)

    def _try_out(self, state: _State) -> None:
        """Short runs of a model's first job."""
        job = state.job
        if job.model.name in self._measured:
            return
        self._measured[job.model.name] = {}
        counts = sorted({min(number, job.max_workers) for number in TRIALS})
        for workers, rate in self.engine.samples_per_s(state.live, counts).items():
            ps = 0 if job.model.ps is None else min(workers, job.max_ps)  # granted beside them, but not run
            self._observe(job.model.name, workers, ps, rate)

    def _observe(self, model: str, workers: int, ps: int, rate: float) -> None:
        seen = self._measured.setdefault(model, {})
        old = seen.get((workers, ps))
        count = old.count if old else 0
        mean = ((old.samples_per_s * count if old else 0.0) + rate) / (count + 1)
        seen[workers, ps] = Observation(workers, ps, mean, count + 1)

    def _view(self, slot: int, active: Sequence[_State]) -> SlotView:
        samples = self.scheduler.knows is Knowledge.SAMPLES
        cluster = self.setup.cluster
        return SlotView(
            slot=slot,
            slot_s=self.setup.slot_s,
            nodes=cluster.nodes,
            capacity=cluster.capacity,
            jobs=tuple(self._job_view(slot, state) for state in active),
            observations={name: tuple(seen.values()) for name, seen in self._measured.items()} if samples else {},
        )

    def _job_view(self, slot: int, state: _State) -> JobView:
        job, model = state.job, state.job.model
        cluster, speeds = self.setup.cluster, self.setup.speeds
        exact = self.scheduler.knows is Knowledge.EXACT
        return JobView(
            job_id=job.job_id,
            order=state.order,
            model=model.name,
            waited_slots=slot - job.arrival_s / self.setup.slot_s,
            epochs=job.epochs,
            remaining_epochs=job.epochs * (1 - state.steps_done / state.live.steps),
            samples_per_epoch=model.samples_per_epoch,
            batch=model.batch,
            worker=model.worker,
            ps=model.ps,
            max_workers=job.max_workers,
            max_ps=job.max_ps,
            requested_workers=job.requested_workers,
            requested_ps=job.requested_ps,
            current_workers=state.workers,
            current_ps=state.ps,
            batch_grows=model.batch_grows,
            noise_scale=model.noise_scale,
            speed=(lambda workers, ps: packed_epochs_per_s(speeds, model, workers, ps, cluster)) if exact else None,
        )

    def _outcome(self, state: _State) -> LiveOutcome:
        losses = self.engine.losses(state.job.job_id)
        return LiveOutcome(
            job_id=state.job.job_id,
            model=state.job.model.name,
            steps=state.live.steps,
            steps_done=state.steps_done,
            most_workers=state.most_workers,
            resizes=state.resizes,
            restarts=state.restarts,
            arrival_slot=first_slot(state.job, self.setup.slot_s),
            start_s=state.start_s,
            finish_s=state.finish_s,
            run_s=state.run_s,
            failed=state.failed,
            losses=losses,
        )


def _hold(state: _State, grant: Grant | None, now_s: float) -> None:
    """What the job holds from now on. As in the simulator, workers make no step without a server that they need."""
    workers, ps = (grant.workers, grant.ps) if grant is not None else (0, 0)
    if state.job.model.ps is not None and not ps:
        workers = 0
    if state.start_s is not None and workers != state.workers:
        state.resizes += 1
    if workers and state.start_s is None:
        state.start_s = now_s
    state.workers, state.ps = workers, ps
    state.most_workers = max(state.most_workers, workers)


def most_workers(jobs: Sequence[Job], cluster: SimCluster) -> int:
    """A bound on the workers of a slot: what the nodes hold of the smallest, and no more than all caps."""
    workers = {job.model.worker for job in jobs}
    held = sum(max(most_tasks(one, None, SimCluster((node,)))[0] for one in workers) for node in cluster.nodes)
    return min(held, sum(job.max_workers for job in jobs))
