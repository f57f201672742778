"""The simulator: discrete slots, allocations from zero in each, completion inside a slot.

A job that arrives within a slot is seen from the next one on. A grant is charged the scaling cost against
what the job held before, runs the rest of the slot at the speed of its tasks, and may finish inside it; what
it held then stands idle to the slot's end, as allocations change only between slots.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphcost.errors import UsageError
from graphcost.sched import Grant, JobView, Knowledge, Observation, Scheduler, SlotView, Speed
from graphcost.sched.compact_nodes import fewest_nodes
from graphcost.sim.checks import check_grants
from graphcost.sim.disturbance import Disturbance
from graphcost.sim.jobs import Job, SimCluster, TrainedModel, checked, fits_somewhere
from graphcost.sim.recording import Recorder
from graphcost.sim.result import Schedule
from graphcost.sim.scaling import Scaling, scalings
from graphcost.sim.speeds import SpeedModel

TRIALS = 8
"""Measurements of a model's first job before it counts as known; Optimus's public code waits for as many."""

MOST_TRIAL_TASKS = 10
"""Workers and servers of a trial are drawn up to here; Optimus's public code."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything but jobs, nodes and speeds. ``max_slots``: jobs unfinished by then are reported so.

    ``queue_oversized``: jobs that fit on no node wait for ever, unseen by the scheduler, instead of being refused.
    """

    slot_s: float = 1200.0
    scaling: Scaling = field(default_factory=lambda: scalings().find("hot"))
    disturbance: Disturbance = field(default_factory=Disturbance)
    max_slots: int = 200_000
    queue_oversized: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.slot_s < math.inf:
            raise UsageError(f"--slot {self.slot_s:g}: a slot lasts more than 0 seconds")


@dataclass(slots=True)
class _State:
    """What changes about a job; a job's row of the result in the end."""

    job: Job
    order: int
    remaining: float
    workers: int = 0
    ps: int = 0
    start_s: float | None = None
    finish_s: float | None = None
    rescales: int = 0
    scaling_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SlotOutcome:
    """What a slot brought: epochs by job, the time each of them took, DL2's reward, and who finished."""

    slot: int
    epochs: Mapping[str, float]
    ran_s: Mapping[str, float]
    reward: float
    finished: tuple[str, ...]


class Simulation:
    """One trace being run. Ask for ``view()``, answer with ``run_slot(grants)``, until ``done``."""

    def __init__(
        self,
        jobs: tuple[Job, ...] | list[Job],
        cluster: SimCluster,
        speeds: SpeedModel,
        settings: Settings | None = None,
        *,
        knows: Knowledge = Knowledge.NONE,
    ) -> None:
        self.settings = settings or Settings()
        self.cluster, self.speeds, self._knows = cluster, speeds, knows
        ordered = checked(jobs, cluster, keep_oversized=self.settings.queue_oversized)
        for model in {job.model.name: job.model for job in ordered}.values():
            speeds.check(model)
        self._states = [_State(job, order, job.epochs) for order, job in enumerate(ordered)]
        self._by_id = {state.job.job_id: state for state in self._states}
        self._active: list[_State] = []
        self._next = 0
        self._capacity = cluster.capacity
        self._measured: dict[str, dict[tuple[int, int], Observation]] = {}
        self._exact: dict[TrainedModel, Speed] = {}
        self._recorder = Recorder(self._capacity, self.settings.slot_s)
        self.slot = 0
        self._admit()

    @property
    def done(self) -> bool:
        """Every job has finished, or the last slot is over."""
        return (not self._active and self._next == len(self._states)) or self.slot >= self.settings.max_slots

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the trace's models, in order."""
        return tuple(sorted({state.job.model.name for state in self._states}))

    def view(self) -> SlotView:
        """The slot at hand, with no more than the scheduler may know."""
        samples = self._knows is Knowledge.SAMPLES
        return SlotView(
            slot=self.slot,
            slot_s=self.settings.slot_s,
            nodes=self.cluster.nodes,
            capacity=self._capacity,
            jobs=tuple(self._job_view(state) for state in self._active),
            observations={name: tuple(seen.values()) for name, seen in self._measured.items()} if samples else {},
        )

    def run_slot(self, grants: tuple[Grant, ...]) -> SlotOutcome:
        """Run the slot and go on to the next one that has jobs. Raises ``ValueError`` for an impossible grant."""
        check_grants(grants, {state.job.job_id: state.job for state in self._active}, self.cluster)
        shared = _shares_of_nodes(grants)
        granted = {grant.job_id: grant for grant in grants if grant.workers + grant.ps}
        epochs: dict[str, float] = {}
        ran_s: dict[str, float] = {}
        finished: list[str] = []
        start_s = self.slot * self.settings.slot_s
        self._recorder.begin(self.slot, start_s, len(self._active))
        for state in self._active:
            done = self._run_job(state, granted.get(state.job.job_id), shared.get(state.job.job_id, 0.0), start_s)
            if done > 0:
                epochs[state.job.job_id] = done
                ran_s[state.job.job_id] = (state.finish_s or start_s + self.settings.slot_s) - start_s
            if state.finish_s is not None:
                finished.append(state.job.job_id)
        reward = sum(done / self._by_id[job_id].job.epochs for job_id, done in epochs.items())
        self._recorder.end(reward)
        outcome = SlotOutcome(self.slot, epochs, ran_s, reward, tuple(finished))
        self._active = [state for state in self._active if state.finish_s is None]
        self.slot += 1
        self._admit()
        return outcome

    def result(self, scheduler: str) -> Schedule:
        """The schedule so far; jobs that have not finished say so."""
        return self._recorder.schedule(
            scheduler,
            [
                (state.job, state.start_s, state.finish_s, state.remaining, state.rescales, state.scaling_s)
                for state in self._states
            ],
        )

    def _admit(self) -> None:
        """Jobs that have arrived by the slot's start; over idle slots in one step."""
        slot_s = self.settings.slot_s
        while self._next < len(self._states):
            state = self._states[self._next]
            arrived = first_slot(state.job, slot_s)
            if arrived > self.slot:
                if self._active:
                    break
                self.slot = arrived
            self._next += 1
            fits = fits_somewhere(state.job, self.cluster)
            if fits:
                self._active.append(state)
            self._recorder.event(state.job.arrival_s, "arrive", state.job.job_id)
            if fits and self._knows is Knowledge.SAMPLES and state.job.model.name not in self._measured:
                self._try_out(state.job)

    def _run_job(self, state: _State, grant: Grant | None, shared: float, start_s: float) -> float:
        """Epochs done in the slot."""
        job, settings = state.job, self.settings
        before, after = (state.workers, state.ps), (grant.workers, grant.ps) if grant else (0, 0)
        started = state.start_s is not None
        scaling_s = min(settings.slot_s, settings.scaling.cost_s(before, after, started=started))
        state.workers, state.ps = after
        if started and before != after:
            state.rescales += 1
            state.scaling_s += scaling_s
        if grant is None:
            self._recorder.stopped(job.job_id, start_s, paused=started and sum(before) > 0)
            return 0.0
        if not started:
            state.start_s = start_s
        samples_per_s = self.speeds.samples_per_s(job.model, grant.tasks)
        real = samples_per_s * settings.disturbance.speed_factor(job.job_id, self.slot)
        real *= settings.disturbance.interference_factor(shared)
        epochs_per_s = real * job.model.efficiency(grant.workers) / job.model.samples_per_epoch
        could = epochs_per_s * (settings.slot_s - scaling_s)
        end_s = start_s + settings.slot_s
        if could >= state.remaining * (1 - 1e-12):
            done, end_s = state.remaining, start_s + scaling_s + state.remaining / epochs_per_s
            state.remaining, state.finish_s = 0.0, end_s
        else:
            done = could
            state.remaining -= done
        self._recorder.ran(job, grant, start_s, end_s, before, first=not started, finished=state.finish_s is not None)
        if self._knows is Knowledge.SAMPLES and samples_per_s > 0:
            self._observe(job.model, grant.workers, grant.ps, real, job.job_id, self.slot)
        return done

    def _job_view(self, state: _State) -> JobView:
        job, model = state.job, state.job.model
        estimate = self.settings.disturbance.epochs_factor(job.job_id)
        return JobView(
            job_id=job.job_id,
            order=state.order,
            model=model.name,
            waited_slots=self.slot - job.arrival_s / self.settings.slot_s,
            epochs=job.epochs * estimate,
            remaining_epochs=state.remaining * estimate,
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
            speed=self._speed(model) if self._knows is Knowledge.EXACT else None,
        )

    def _speed(self, model: TrainedModel) -> Speed:
        """Exact epochs per second on the fewest nodes, kept per model."""
        if model not in self._exact:
            found: dict[tuple[int, int], float] = {}

            def speed(workers: int, ps: int) -> float:
                key = (workers, ps)
                if key not in found:
                    found[key] = packed_epochs_per_s(self.speeds, model, workers, ps, self.cluster)
                return found[key]

            self._exact[model] = speed
        return self._exact[model]

    def _try_out(self, job: Job) -> None:
        """Short runs with random tasks, as Optimus makes them; their time is not charged."""
        draw = self.settings.disturbance.generator(f"trials:{job.model.name}")
        self._measured[job.model.name] = {}
        for trial in range(TRIALS):
            workers = int(draw.integers(1, min(job.max_workers, MOST_TRIAL_TASKS) + 1))
            ps = int(draw.integers(1, min(job.max_ps, MOST_TRIAL_TASKS) + 1)) if job.model.ps else 0
            rate = self.speeds.samples_per_s(job.model, fewest_nodes(job.model, workers, ps, self.cluster.nodes[0]))
            if rate > 0:
                self._observe(job.model, workers, ps, rate, f"trial:{job.model.name}", trial)

    def _observe(self, model: TrainedModel, workers: int, ps: int, rate: float, what: str, slot: int) -> None:
        seen = self._measured.setdefault(model.name, {})
        measured = self.settings.disturbance.measured(rate, what, slot)
        old = seen.get((workers, ps))
        count = old.count if old else 0
        mean = ((old.samples_per_s * count if old else 0.0) + measured) / (count + 1)
        seen[workers, ps] = Observation(workers, ps, mean, count + 1)


def first_slot(job: Job, slot_s: float) -> int:
    """The first slot that starts at or after the job's arrival."""
    return math.ceil(job.arrival_s / slot_s)


def packed_epochs_per_s(speeds: SpeedModel, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
    """Undisturbed, on as few nodes as hold the tasks; 0 without a worker or without a needed server."""
    if workers < 1 or (model.ps is not None and ps < 1):
        return 0.0
    rate = speeds.samples_per_s(model, fewest_nodes(model, workers, ps, cluster.nodes[0]))
    return rate * model.efficiency(workers) / model.samples_per_epoch


def _shares_of_nodes(grants: tuple[Grant, ...]) -> dict[str, float]:
    """Job -> the share of its tasks that lie on nodes with other jobs."""
    tenants: dict[int, int] = {}
    for grant in grants:
        for group in grant.tasks:
            tenants[group.node] = tenants.get(group.node, 0) + 1
    shares = {}
    for grant in grants:
        crowded = sum(group.workers + group.ps for group in grant.tasks if tenants[group.node] > 1)
        shares[grant.job_id] = crowded / max(1, grant.workers + grant.ps)
    return shares


def simulate(
    jobs: tuple[Job, ...] | list[Job],
    cluster: SimCluster,
    scheduler: Scheduler,
    speeds: SpeedModel,
    settings: Settings | None = None,
    *,
    seed: int = 0,
) -> Schedule:
    """Run a whole trace under one scheduler; deterministic in its arguments.

    Raises ``UsageError`` or ``PlacementError`` for jobs that cannot be run, ``ValueError`` for a
    scheduler that grants what is not there.
    """
    run = Simulation(jobs, cluster, speeds, settings, knows=scheduler.knows)
    while not run.done:
        run.run_slot(scheduler.decide(run.view(), seed).grants)
    return run.result(scheduler.name)
