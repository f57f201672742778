"""PS/Worker jobs moved to AllReduce or PEARL: who gains, who loses, and why.

AllReduce-Local and PEARL run on one server: n' = min(n, GPUs of a server); AllReduce-Cluster
keeps n. A job keeps its features; its weights move over other media, and cNodes of one
server contend for one PCIe on input. Source: PAI study, projection of PS/Worker jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphcost._version import __version__
from graphcost.engine.paper import PaperTimes
from graphcost.errors import UsageError
from graphcost.fleet.characterize import (
    PARTS,
    TIME_COLUMNS,
    hardware_info,
    parts_of,
    source_of,
    time_columns,
    with_columns,
)
from graphcost.fleet.evaluate import Evaluator
from graphcost.fleet.jobs import Column, Jobs, ratio
from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, KINDS, PEARL, PS, JobKind
from graphcost.fleet.rates import Hardware
from graphcost.fleet.result import Projection, TargetArch
from graphcost.fleet.table import JobTable, open_jobs, polars_module
from graphcost.fleet.tally import LEVELS, RatioHistogram, WeightedMean
from graphcost.fleet.writing import Writer
from graphcost.registry import did_you_mean

if TYPE_CHECKING:
    import polars as pl

CANDIDATES = (ALLREDUCE_LOCAL, ALLREDUCE_CLUSTER, PEARL)
BEST = "best"
CHOICES = (*(kind.id for kind in CANDIDATES), BEST)

NOT_PS, DOES_NOT_FIT, FASTER, FEWER_CNODES, INPUT, WEIGHTS, SAME = range(7)
REASONS = (
    "not a PS/Worker job: not projected",
    "replica does not fit in device memory",
    "faster: less time for weights",
    "faster per cNode, but fewer cNodes",
    "slower: input copies share one PCIe",
    "slower: more time for weights",
    "no change",
)
"""Why a job gains throughput or does not; ``reason`` of per-job output."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Jobs as they would run on another architecture; one entry a job.

    ``speedup``: of one cNode, T / T_to. ``throughput_speedup``: (n_to / T_to) / (n / T).
    """

    kind: JobKind
    cnodes: Column
    times: PaperTimes
    fits: NDArray[np.bool_]
    speedup: Column
    throughput_speedup: Column
    reason: NDArray[np.intp]


def move(
    jobs: Jobs, before: PaperTimes, kind: JobKind, hardware: Hardware, input_sharing: int | None = None,
    *, before_s: Any = None, after_s: Any = None,
) -> Moved:  # fmt: skip
    """``jobs``, all PS/Worker with these times, as ``kind``.

    ``before_s`` and ``after_s`` (a function of times) replace the sum of parts, for other ideas of overlap.
    """
    cluster = hardware.cluster
    cnodes = np.minimum(jobs.cnodes, cluster.server.gpus) if kind.one_server else jobs.cnodes
    times = Evaluator(jobs, input_sharing=input_sharing, cnodes=cnodes).times(kind, hardware)
    parts = cnodes if kind is PEARL else 1.0  # PEARL cuts the tables into as many parts
    fits = jobs.dense_model_bytes + jobs.sparse_model_bytes / parts <= cluster.device.mem_bytes
    old_s = before.step_s if before_s is None else before_s
    new_s = times.step_s if after_s is None else after_s(times)
    speedup = ratio(old_s, new_s, empty=1.0)
    throughput = speedup * (cnodes / jobs.cnodes)
    input_longer, weights_longer = times.input_s - before.input_s, times.weight_s - before.weight_s
    reason = np.select(
        [~fits, throughput > 1, speedup > 1, (throughput == 1) & (speedup == 1), input_longer >= weights_longer],
        [DOES_NOT_FIT, FASTER, FEWER_CNODES, SAME, INPUT],
        WEIGHTS,
    )
    # A job as fast as before on fewer cNodes is slower for those alone.
    reason[fits & (speedup == 1) & (throughput < 1)] = FEWER_CNODES
    return Moved(kind, cnodes, times, fits, speedup, throughput, reason)


@dataclass(slots=True)
class TargetTally:
    """Counts over PS/Worker jobs moved to one architecture."""

    jobs: int = 0
    fits: int = 0
    unstated: int = 0
    faster: int = 0
    gains: int = 0
    speedup: WeightedMean = field(default_factory=WeightedMean)
    throughput: WeightedMean = field(default_factory=WeightedMean)
    speedups: RatioHistogram = field(default_factory=RatioHistogram)
    throughputs: RatioHistogram = field(default_factory=RatioHistogram)
    before: dict[str, WeightedMean] = field(default_factory=lambda: {part: WeightedMean() for part in PARTS})
    after: dict[str, WeightedMean] = field(default_factory=lambda: {part: WeightedMean() for part in PARTS})
    reasons: Column = field(default_factory=lambda: np.zeros(len(REASONS)))

    def add(self, jobs: Jobs, before: PaperTimes, moved: Moved) -> None:
        """A block."""
        fits = moved.fits
        self.jobs += len(jobs)
        self.fits += int(np.count_nonzero(fits))
        self.unstated += int(np.count_nonzero(~jobs.is_stated))
        self.faster += int(np.count_nonzero(fits & (moved.speedup > 1)))
        self.gains += int(np.count_nonzero(fits & (moved.throughput_speedup > 1)))
        self.speedup.add(moved.speedup[fits])
        self.throughput.add(moved.throughput_speedup[fits])
        self.speedups.add(moved.speedup[fits])
        self.throughputs.add(moved.throughput_speedup[fits])
        for times, means in ((before, self.before), (moved.times, self.after)):
            for mean, seconds in zip(means.values(), parts_of(times), strict=True):
                mean.add(ratio(seconds, times.step_s, empty=0.0)[fits])
        self.reasons += np.bincount(moved.reason, minlength=len(REASONS))

    def result(self, kind: JobKind) -> TargetArch:
        """As reported."""
        return TargetArch(
            to=kind.id,
            jobs=self.jobs,
            fits=self.fits,
            unstated=self.unstated,
            faster_per_cnode=self.faster,
            gains_throughput=self.gains,
            gain_share=self.gains / self.jobs if self.jobs else 0.0,
            gain_share_of_fitting=self.gains / self.fits if self.fits else 0.0,
            mean_speedup=self.speedup.mean,
            mean_throughput_speedup=self.throughput.mean,
            speedup_quantiles=self.speedups.quantiles(),
            throughput_speedup_quantiles=self.throughputs.quantiles(),
            comm_share_before=self.before["communication"].mean,
            comm_share_after=self.after["communication"].mean,
            input_share_after=self.after["input"].mean,
            parts_before={part: tally.mean for part, tally in self.before.items()},
            parts_after={part: tally.mean for part, tally in self.after.items()},
            reasons={text: int(count) for text, count in zip(REASONS, self.reasons.tolist(), strict=True) if count},
        )


@dataclass(slots=True)
class _Tally:
    jobs: int = 0
    cnodes: float = 0.0
    ps_jobs: int = 0
    targets: dict[str, TargetTally] = field(default_factory=lambda: {kind.id: TargetTally() for kind in CANDIDATES})
    best: dict[str, int] = field(default_factory=lambda: dict.fromkeys((PS.id, *(k.id for k in CANDIDATES)), 0))
    best_throughput: WeightedMean = field(default_factory=WeightedMean)
    local_losers: int = 0
    helped: int = 0


def project(
    source: str, hardware: Hardware, *, to: str = BEST, input_sharing: int | None = None, output: str | None = None
) -> Projection:
    """Move every PS/Worker job of a table to each candidate; ``to`` decides what per-job ``output`` shows.

    Raises as :func:`graphcost.fleet.characterize.characterize`, and ``UsageError`` for an unknown ``to``.
    """
    if to not in CHOICES:
        raise UsageError(f"--to {to}: no such architecture{did_you_mean(to, CHOICES)} ({', '.join(CHOICES)})")
    table = open_jobs(source)
    tally = _Tally()
    frames = _moved(table, hardware, input_sharing, to, tally, whole=output is not None)
    if output is None:
        for _ in frames:
            pass
    else:
        numbers = (*TIME_COLUMNS, *(f"{name}_to" for name in TIME_COLUMNS), "cnodes_to", "speedup",
                   "throughput_speedup")  # fmt: skip
        added = {**dict.fromkeys(numbers, "Float64"), "best_arch": "String", "reason": "String"}
        Writer(output, table).write(frames, added)
    return Projection(
        graphcost_version=__version__,
        command="fleet project",
        table=source_of(table, tally.jobs, tally.cnodes),
        hardware=hardware_info(hardware, input_sharing),
        levels=LEVELS,
        ps_jobs=tally.ps_jobs,
        other_jobs=tally.jobs - tally.ps_jobs,
        targets=tuple(tally.targets[kind.id].result(kind) for kind in CANDIDATES),
        best=dict(tally.best),
        best_mean_throughput_speedup=tally.best_throughput.mean,
        local_losers_helped_by_cluster=tally.helped / tally.local_losers if tally.local_losers else 0.0,
    )


def _moved(
    table: JobTable, hardware: Hardware, input_sharing: int | None, to: str, tally: _Tally, *, whole: bool
) -> Iterator[pl.DataFrame]:
    for frame, jobs in table.blocks(hardware.cluster, whole=whole):
        tally.jobs += len(jobs)
        tally.cnodes += float(jobs.cnodes.sum())
        sheet = _Sheet(jobs, to) if whole else None
        for kind, rows, some in jobs.by_kind():
            if kind is not PS and sheet is None:
                continue
            before = Evaluator(some, input_sharing=input_sharing).times(kind, hardware)
            options: tuple[Moved, ...] = ()
            if kind is PS:
                options = tuple(move(some, before, one, hardware, input_sharing) for one in CANDIDATES)
                chosen = _count(some, before, options, tally)
                if sheet is not None:
                    sheet.put_moved(rows, some, before, options, chosen)
            elif sheet is not None:
                sheet.put_kept(rows, kind, some, before)
        yield frame if sheet is None else sheet.on(frame)


def best_of(options: tuple[Moved, ...]) -> tuple[NDArray[np.intp], Column]:
    """Per job 0 to stay, else 1 + the option with the highest throughput that fits; and that throughput."""
    gains = np.stack([np.ones(len(options[0].fits)), *(np.where(o.fits, o.throughput_speedup, 0.0) for o in options)])
    chosen = np.argmax(gains, axis=0)  # the first of equals: who gains nothing stays
    return chosen, gains.max(axis=0)


def _count(jobs: Jobs, before: PaperTimes, options: tuple[Moved, ...], tally: _Tally) -> NDArray[np.intp]:
    tally.ps_jobs += len(jobs)
    for moved in options:
        tally.targets[moved.kind.id].add(jobs, before, moved)
    chosen, gain = best_of(options)
    for name, count in zip(tally.best, np.bincount(chosen, minlength=len(tally.best)).tolist(), strict=True):
        tally.best[name] += count
    tally.best_throughput.add(gain)
    local, cluster = options[0], options[1]
    loses = local.fits & (local.throughput_speedup <= 1)
    tally.local_losers += int(np.count_nonzero(loses))
    tally.helped += int(np.count_nonzero(loses & cluster.fits & (cluster.throughput_speedup > 1)))
    return chosen


class _Sheet:
    """Per-job columns of one block, filled kind by kind. What was not moved is empty, or kept under ``best``."""

    def __init__(self, jobs: Jobs, to: str) -> None:
        self._to = to
        numbers = (*TIME_COLUMNS, *(f"{name}_to" for name in TIME_COLUMNS), "cnodes_to", "speedup",
                   "throughput_speedup")  # fmt: skip
        self._numbers = {name: np.full(len(jobs), np.nan) for name in numbers}
        self._best = np.zeros(len(jobs), dtype=np.intp)
        self._reason = np.full(len(jobs), NOT_PS, dtype=np.intp)

    def _put(self, rows: NDArray[np.intp], values: dict[str, Any]) -> None:
        for name, value in values.items():
            self._numbers[name][rows] = value

    def put_kept(self, rows: NDArray[np.intp], kind: JobKind, jobs: Jobs, times: PaperTimes) -> None:
        """Jobs that are not projected."""
        self._best[rows] = kind.code
        self._put(rows, time_columns(times))
        if self._to == BEST:
            self._put(rows, {**time_columns(times, "_to"), "cnodes_to": jobs.cnodes, "speedup": 1.0,
                             "throughput_speedup": 1.0})  # fmt: skip

    def put_moved(
        self, rows: NDArray[np.intp], jobs: Jobs, before: PaperTimes, options: tuple[Moved, ...],
        chosen: NDArray[np.intp],
    ) -> None:  # fmt: skip
        """PS/Worker jobs, with the architecture asked for or the best."""
        codes = np.array([PS.code, *(one.kind.code for one in options)])
        self._best[rows] = codes[chosen]
        self._put(rows, time_columns(before))
        if self._to != BEST:
            moved = next(one for one in options if one.kind.id == self._to)
            self._reason[rows] = moved.reason
            kept = moved.fits
            values = {**time_columns(moved.times, "_to"), "cnodes_to": moved.cnodes, "speedup": moved.speedup,
                      "throughput_speedup": moved.throughput_speedup}  # fmt: skip
            self._put(rows[kept], {name: value[kept] for name, value in values.items()})
            return
        stay = {**time_columns(before, "_to"), "cnodes_to": jobs.cnodes, "speedup": 1.0, "throughput_speedup": 1.0}
        self._put(rows, stay)
        # Who stays is told what held back the option that came nearest.
        nearest = np.argmax(np.stack([np.where(o.fits, o.throughput_speedup, 0.0) for o in options]), axis=0)
        self._reason[rows] = np.choose(nearest, [one.reason for one in options])
        for index, moved in enumerate(options, start=1):
            won = chosen == index
            values = {**time_columns(moved.times, "_to"), "cnodes_to": moved.cnodes, "speedup": moved.speedup,
                      "throughput_speedup": moved.throughput_speedup}  # fmt: skip
            self._put(rows[won], {name: value[won] for name, value in values.items()})

    def on(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The block with these columns."""
        pl = polars_module()
        names = pl.Series([kind.id for kind in KINDS])
        return with_columns(
            frame,
            {
                **self._numbers,
                "best_arch": names.gather(self._best),
                "reason": pl.Series(REASONS).gather(self._reason),
            },
        )
