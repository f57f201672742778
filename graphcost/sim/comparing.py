"""Schedulers against each other on the same traces: means with intervals, paired differences, the bound.

Intervals are percentiles of bootstrap resamples over traces (a trace is the unit; jobs of one are not
independent). Differences are paired by trace, since traces differ far more than schedulers do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphcost.errors import UsageError
from graphcost.sched import Scheduler
from graphcost.sim.bound import per_job_optimum
from graphcost.sim.jobs import Job, SimCluster
from graphcost.sim.result import METRICS, JobOutcome, Metrics
from graphcost.sim.simulation import Settings, simulate
from graphcost.sim.speeds import SpeedModel

RESAMPLES = 4000
CONFIDENCE = 0.95
BOUND = "bound"

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean over traces with its bootstrap interval; equal ends for a single trace."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One scheduler (or the bound) over all traces; a figure that a trace cannot give is None."""

    scheduler: str
    figures: dict[str, Interval | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean completion time of ``scheduler`` less that of ``against``, trace by trace.

    ``relative``: the mean difference over the mean of ``against``. ``sooner_on``,
    ``later_on``: traces on which it is less, or more.
    """

    scheduler: str
    against: str
    mean_jct_s: Interval
    relative: Interval
    sooner_on: int
    later_on: int


@dataclass(frozen=True, slots=True)
class ScheduleComparison:
    """What ``schedule compare`` found; ``completion_s``: by scheduler and for the bound, of all finished jobs."""

    seeds: tuple[int, ...]
    confidence: float
    resamples: int
    rows: tuple[Row, ...]
    bound: Row
    differences: tuple[Difference, ...]
    completion_s: Mapping[str, tuple[float, ...]]


def compare_schedulers(
    schedulers: Sequence[Scheduler],
    traces: Sequence[tuple[int, Sequence[Job]]],
    cluster: SimCluster,
    speeds: SpeedModel,
    settings: Callable[[int], Settings],
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> ScheduleComparison:
    """Run every scheduler on every (seed, jobs); ``settings(seed)`` are a trace's own, equal for all.

    Raises ``UsageError`` for no schedulers, no traces, or the same scheduler twice.
    """
    names = [scheduler.name for scheduler in schedulers]
    if not names or not traces:
        raise UsageError("a comparison needs at least one scheduler and one trace")
    if len(set(names)) < len(names):
        raise UsageError(f"--schedulers {','.join(names)}: one of them is named twice")
    found: dict[str, list[Metrics]] = {name: [] for name in (*names, BOUND)}
    times_s: dict[str, list[float]] = {name: [] for name in found}
    for position, (seed, jobs) in enumerate(traces, start=1):
        progress(f"trace {position} of {len(traces)}")
        outcomes, metrics = per_job_optimum(list(jobs), cluster, speeds, settings(seed))
        found[BOUND].append(metrics)
        times_s[BOUND] += _completion_s(outcomes)
        for scheduler in schedulers:
            done = simulate(list(jobs), cluster, scheduler, speeds, settings(seed), seed=seed)
            found[scheduler.name].append(done.metrics)
            times_s[scheduler.name] += _completion_s(done.jobs)
    picks = np.random.default_rng(0).integers(len(traces), size=(RESAMPLES, len(traces)))
    rows = {name: _row(name, metrics, picks) for name, metrics in found.items()}
    times = {name: _values(found[name], "mean_jct_s") for name in names}
    return ScheduleComparison(
        seeds=tuple(seed for seed, _ in traces),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        rows=tuple(rows[name] for name in names),
        bound=rows[BOUND],
        differences=tuple(
            _difference(one, other, times[one], times[other], picks)
            for index, other in enumerate(names)
            for one in names[index + 1 :]
        ),
        completion_s={name: tuple(each) for name, each in times_s.items()},
    )


def _completion_s(outcomes: Sequence[JobOutcome]) -> list[float]:
    return [jct_s for job in outcomes if (jct_s := job.jct_s) is not None]


def _values(metrics: Sequence[Metrics], name: str) -> Values:
    values = [getattr(one, name) for one in metrics]
    return np.array([np.nan if value is None else value for value in values], float)


def _row(name: str, metrics: Sequence[Metrics], picks: NDArray[np.int64]) -> Row:
    figures = {figure: _values(metrics, figure) for figure in METRICS}
    return Row(
        name,
        {figure: None if np.isnan(values).any() else interval(values, picks) for figure, values in figures.items()},
    )


def interval(values: Values, picks: NDArray[np.int64]) -> Interval:
    """Mean of ``values`` and the percentiles of its resampled means; ``picks``: a row of traces a resample."""
    return _interval(float(values.mean()), values[picks].mean(axis=1))


def _interval(mean: float, resampled: Values) -> Interval:
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(resampled, (tail, 100 - tail))
    return Interval(mean, min(mean, float(low)), max(mean, float(high)))


def _difference(one: str, other: str, first: Values, second: Values, picks: NDArray[np.int64]) -> Difference:
    apart = first - second
    ratios = apart[picks].mean(axis=1) / second[picks].mean(axis=1)
    return Difference(
        scheduler=one,
        against=other,
        mean_jct_s=interval(apart, picks),
        relative=_interval(float(apart.mean() / second.mean()), ratios),
        sooner_on=int((apart < 0).sum()),
        later_on=int((apart > 0).sum()),
    )
