"""From what the command line names to what a simulation needs: nodes, speeds, settings, jobs, notes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from graphcost.errors import UnknownNameError, UsageError
from graphcost.placing import AnalysisOptions
from graphcost.registry import did_you_mean
from graphcost.sched import Resources
from graphcost.sim.disturbance import Disturbance
from graphcost.sim.jobs import Job, SimCluster, TrainedModel, checked, fits_somewhere, oversized_note
from graphcost.sim.scaling import scalings
from graphcost.sim.simulation import Settings
from graphcost.sim.speeds import AnalyticalSpeeds, FitSpeeds, SpeedModel, TableSpeeds
from graphcost.sim.traces import Trace, jobs_of, read_trace, rows_of
from graphcost.sim.workloads import Load, Split, Workload, generate, load_workload, offered_load, stretched

_KINDS = ("fits:release", "fits:development", "analytical", "engine:CLUSTER", "a table's .csv")


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """Names and defaults are the command line's; None: the workload's own."""

    workload: str = "dl2-release"
    trace: Path | None = None
    part: int = 1
    skip_bad_rows: bool = False
    count: int | None = None
    nodes: int | None = None
    cpus_per_node: float | None = None
    gpus_per_node: float | None = None
    slot_s: float | None = None
    speeds: str | None = None
    speed_source: str | None = None
    arch: str | None = None
    max_workers: int | None = None
    load: float | None = None
    scaling: str = "hot"
    speed_variation: float = 0.0
    interference: float = 0.0
    epoch_error: float = 0.0
    measurement_noise: float = 0.05
    oversized: str = "refuse"


@dataclass(frozen=True, slots=True)
class Setup:
    """A cluster, speeds, and ``draw(seed, split)`` for jobs, their load and notes."""

    options: SetupOptions
    workload: Workload
    cluster: SimCluster
    speeds: SpeedModel
    slot_s: float
    trace: Trace | None
    draw: Callable[[int, Split | None], tuple[tuple[Job, ...], Load, tuple[str, ...]]]

    def settings(self, seed: int) -> Settings:
        """Of the trace with this seed."""
        options = self.options
        return Settings(
            slot_s=self.slot_s,
            scaling=scalings().find(options.scaling),
            disturbance=Disturbance(
                seed=seed,
                speed_variation=options.speed_variation,
                interference=options.interference,
                epoch_error=options.epoch_error,
                measurement_noise=options.measurement_noise,
            ),
            queue_oversized=options.oversized == "queue",
        )


def set_up(options: SetupOptions) -> Setup:
    """Resolve the options; raises the errors of what they name."""
    workload = load_workload(options.workload)
    if options.max_workers is not None:
        if options.max_workers < 1:
            raise UsageError(f"--max-workers {options.max_workers}: at least one")
        workload = replace(workload, max_workers=options.max_workers, max_ps=options.max_workers)
    if options.arch is not None:
        workload = replace(workload, models=tuple(_under(model, options.arch) for model in workload.models))
    nodes = workload.nodes if options.nodes is None else options.nodes
    cpus = workload.cpus if options.cpus_per_node is None else options.cpus_per_node
    gpus = workload.gpus if options.gpus_per_node is None else options.gpus_per_node
    cluster = SimCluster.equal(nodes, cpus, gpus)
    speeds = speeds_of(options.speeds or workload.speeds, options.speed_source)
    for model in workload.models:
        speeds.check(model)
    slot_s = workload.slot_s if options.slot_s is None else options.slot_s
    trace = None if options.trace is None else read_trace(options.trace, skip_bad_rows=options.skip_bad_rows)

    def draw(seed: int, split: Split | None) -> tuple[tuple[Job, ...], Load, tuple[str, ...]]:
        if trace is None:
            jobs = generate(workload, seed, speeds, cluster, options.count)
            notes: tuple[str, ...] = ()
        else:
            rows = rows_of(trace, options.count, part=options.part, split=split, seed=seed)
            own = trace.format == "graphcost"  # its models are the workload's; others call theirs what they like
            jobs, notes = jobs_of(rows, workload, speeds, cluster, seed, known_models=own)
        jobs = checked(jobs, cluster, keep_oversized=options.oversized == "queue")
        waiting = oversized_note(jobs, cluster)
        notes += () if waiting is None else (waiting,)
        load = load_of(jobs)
        if options.load is not None:
            jobs = stretched(jobs, load, options.load, slot_s)
            load = load_of(jobs)
        return jobs, load, notes

    def load_of(jobs: tuple[Job, ...]) -> Load:
        return offered_load([job for job in jobs if fits_somewhere(job, cluster)], cluster, speeds, slot_s)

    made = Setup(options, workload, cluster, speeds, slot_s, trace, draw)
    made.settings(0)  # refuses wrong shares before anything runs
    return made


_SERVER = Resources.of(4, 0)
"""assumed: what a parameter server takes where the workload has none."""


def _under(model: TrainedModel, arch: str) -> TrainedModel:
    """The model trained with parameter servers, or by AllReduce."""
    if arch not in ("ps", "allreduce"):
        raise UnknownNameError(f"no architecture named {arch!r} for jobs of a schedule (ps, allreduce)")
    return replace(model, ps=(model.ps or _SERVER) if arch == "ps" else None)


def speeds_of(name: str, source: str | None = None) -> SpeedModel:
    """``fits:NAME``, ``analytical``, ``engine:CLUSTER`` or a table's path."""
    kind, _, rest = name.partition(":")
    if source is not None and not name.endswith(".csv"):
        raise UsageError(f"--speed-source goes with a table of speeds, not with {name}")
    if kind == "fits":
        return FitSpeeds(rest)
    if name == "analytical":
        return AnalyticalSpeeds()
    if kind == "engine" and rest:
        from graphcost.sim.speeds.engine import EngineSpeeds

        return EngineSpeeds(AnalysisOptions(cluster=rest))
    if name.endswith(".csv"):
        return TableSpeeds(Path(name), source)
    raise UnknownNameError(f"no speeds named {name!r}{did_you_mean(name, _KINDS)} ({', '.join(_KINDS)})")
