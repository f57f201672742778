"""Where the time of a population of jobs goes: shares by type, by job and by cNode.

Source: PAI study, collective behaviour (job types, breakdown of time, distributions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphcost._version import __version__
from graphcost.engine.paper import PaperTimes
from graphcost.fleet.evaluate import Evaluator
from graphcost.fleet.jobs import Column, Jobs, ratio
from graphcost.fleet.kinds import KINDS
from graphcost.fleet.rates import Hardware
from graphcost.fleet.result import (
    Breakdown,
    Characterization,
    HardwareInfo,
    PartStats,
    SizeCount,
    Source,
    TypeStats,
)
from graphcost.fleet.table import EXAMPLE_KEY, SYNTHETIC_KEY, JobTable, open_jobs
from graphcost.fleet.tally import LEVELS, PartTally, share_bins
from graphcost.fleet.writing import Writer

if TYPE_CHECKING:
    import polars as pl

PARTS = ("input", "compute", "memory", "communication")
TIME_COLUMNS = ("input_s", "compute_s", "memory_s", "comm_s", "step_s")
"""Seconds of every job in per-job output."""
WEIGHTINGS = ("by_job", "by_cnode", "by_gpu_hour")
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""cNodes of the counts by size."""
LARGE_MODEL_BYTES = 10e9
IDLE = "none"


def parts_of(times: PaperTimes) -> tuple[Column, ...]:
    """Input, compute, memory, communication."""
    return (times.input_s, times.compute_s, times.memory_s, times.weight_s)


def time_columns(times: PaperTimes, suffix: str = "") -> dict[str, Column]:
    """Per-job columns, ``input_s`` to ``step_s``."""
    values = (*parts_of(times), times.step_s)
    return {name + suffix: value for name, value in zip(TIME_COLUMNS, values, strict=True)}


@dataclass(slots=True)
class KindTally:
    """All that is counted of one type."""

    jobs: int = 0
    cnodes: float = 0.0
    gpu_hours: float = 0.0
    parts: dict[str, dict[str, PartTally]] = field(
        default_factory=lambda: {weighting: {part: PartTally() for part in PARTS} for weighting in WEIGHTINGS}
    )
    bound: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    idle: int = 0
    sizes: dict[int, tuple[int, float]] = field(default_factory=lambda: dict.fromkeys(SIZES, (0, 0.0)))
    models_known: int = 0
    models_under_10gb: int = 0

    def add(self, jobs: Jobs, times: PaperTimes) -> None:
        """A block of one type."""
        self.jobs += len(jobs)
        self.cnodes += float(jobs.cnodes.sum())
        parts, step_s = parts_of(times), times.step_s
        weights: list[tuple[str, Column | None]] = [("by_job", None), ("by_cnode", jobs.cnodes)]
        if jobs.gpu_hours is not None:
            self.gpu_hours += float(jobs.gpu_hours.sum())
            weights.append(("by_gpu_hour", jobs.gpu_hours))
        for part, seconds in zip(PARTS, parts, strict=True):
            shares = ratio(seconds, step_s, empty=0.0)
            bins = share_bins(shares)
            for weighting, weight in weights:
                self.parts[weighting][part].add(shares, bins, weight)
        busy = step_s > 0
        largest = np.bincount(np.argmax(np.stack(parts), axis=0)[busy], minlength=len(PARTS))
        for part, count in zip(PARTS, largest.tolist(), strict=True):
            self.bound[part] += count
        self.idle += len(jobs) - int(np.count_nonzero(busy))
        for most in SIZES:
            small = jobs.cnodes <= most
            count, cnodes = self.sizes[most]
            self.sizes[most] = (count + int(np.count_nonzero(small)), cnodes + float(jobs.cnodes @ small))
        model_bytes = (jobs.dense_model_bytes + jobs.sparse_model_bytes)[jobs.is_stated]
        self.models_known += len(model_bytes)
        self.models_under_10gb += int(np.count_nonzero(model_bytes < LARGE_MODEL_BYTES))

    def merged(self, other: KindTally) -> KindTally:
        """Both together."""
        return KindTally(
            self.jobs + other.jobs,
            self.cnodes + other.cnodes,
            self.gpu_hours + other.gpu_hours,
            {
                weighting: {part: tally.merged(other.parts[weighting][part]) for part, tally in mine.items()}
                for weighting, mine in self.parts.items()
            },
            {part: count + other.bound[part] for part, count in self.bound.items()},
            self.idle + other.idle,
            {most: (n + other.sizes[most][0], c + other.sizes[most][1]) for most, (n, c) in self.sizes.items()},
            self.models_known + other.models_known,
            self.models_under_10gb + other.models_under_10gb,
        )


def characterize(
    source: str, hardware: Hardware, *, input_sharing: int | None = None, output: str | None = None
) -> Characterization:
    """Read a table of jobs once and say where their time goes.

    ``input_sharing``: most cNodes that contend for one PCIe, None for all of a server.
    ``output``: a CSV or Parquet file that gets every job with its seconds. Raises
    ``DataFileError`` for a table that cannot be read and ``UsageError`` for an output
    that cannot be written.
    """
    table = open_jobs(source)
    tallies: dict[int, KindTally] = {}
    frames = _timed(table, hardware, input_sharing, tallies, whole=output is not None)
    if output is None:
        for _ in frames:
            pass
    else:
        Writer(output, table).write(frames, dict.fromkeys(TIME_COLUMNS, "Float64"))
    return summary(table.source, table.marks, hardware, input_sharing, tallies)


def _timed(
    table: JobTable, hardware: Hardware, input_sharing: int | None, tallies: dict[int, KindTally], *, whole: bool
) -> Iterator[pl.DataFrame]:
    for frame, jobs in table.blocks(hardware.cluster, whole=whole):
        columns = {name: np.empty(len(jobs)) for name in TIME_COLUMNS} if whole else {}
        for rows, times in count_block(jobs, hardware, input_sharing, tallies):
            for name, values in time_columns(times).items() if whole else ():
                columns[name][rows] = values
        yield with_columns(frame, columns)


def count_block(
    jobs: Jobs, hardware: Hardware, input_sharing: int | None, tallies: dict[int, KindTally]
) -> Iterator[tuple[NDArray[np.intp], PaperTimes]]:
    """Count a block into ``tallies``, by code of kind; row numbers and times, kind by kind."""
    for kind, rows, some in jobs.by_kind():
        times = Evaluator(some, input_sharing=input_sharing).times(kind, hardware)
        tallies.setdefault(kind.code, KindTally()).add(some, times)
        yield rows, times


def with_columns(frame: pl.DataFrame, columns: Mapping[str, Any]) -> pl.DataFrame:
    """The block with further columns; NaN is an empty cell."""
    import polars as pl

    made = [pl.Series(name, values, nan_to_null=True) for name, values in columns.items()]
    return frame.with_columns(made) if made else frame


def source_of(table: JobTable, jobs: int, cnodes: float) -> Source:
    """The table as results name it."""
    return _source(table.source, table.marks, jobs, cnodes)


def _source(file: str, marks: Mapping[str, str], jobs: int, cnodes: float) -> Source:
    return Source(file, marks.get(SYNTHETIC_KEY), marks.get(EXAMPLE_KEY), jobs, cnodes)


def hardware_info(hardware: Hardware, input_sharing: int | None) -> HardwareInfo:
    """The hardware as results name it; nominal rates."""
    cluster = hardware.cluster
    scale_up = cluster.server.scale_up
    return HardwareInfo(
        cluster=cluster.id,
        device=cluster.device.id,
        profile=str(hardware.profile),
        precision=hardware.precision,
        input_sharing=input_sharing,
        network_bytes_per_s=cluster.network.bytes_per_s,
        nvlink_bytes_per_s=None if scale_up is None else scale_up.bytes_per_s,
        pcie_bytes_per_s=cluster.server.pcie.bytes_per_s,
        mem_bytes_per_s=cluster.device.mem_bytes_per_s,
        peak_flops_per_s=cluster.device.peak(hardware.precision),
        notes=hardware.notes,
    )


def summary(
    file: str,
    marks: Mapping[str, str],
    hardware: Hardware,
    input_sharing: int | None,
    tallies: Mapping[int, KindTally],
) -> Characterization:
    """Counts as a result."""
    overall = KindTally()
    for tally in tallies.values():
        overall = overall.merged(tally)
    types = tuple(_stats(kind.title, kind.id, tallies[kind.code], overall) for kind in KINDS if kind.code in tallies)
    return Characterization(
        graphcost_version=__version__,
        command="fleet characterize",
        table=_source(file, marks, overall.jobs, overall.cnodes),
        hardware=hardware_info(hardware, input_sharing),
        levels=LEVELS,
        types=types,
        overall=_stats("all", "all", overall, overall),
    )


def _stats(title: str, arch: str, tally: KindTally, overall: KindTally) -> TypeStats:
    broken = {
        weighting: Breakdown(*(_part(tally.parts[weighting][part]) for part in PARTS)) for weighting in WEIGHTINGS
    }
    hours = tally.gpu_hours / overall.gpu_hours if overall.gpu_hours else None
    return TypeStats(
        type=title,
        arch=arch,
        jobs=tally.jobs,
        job_share=tally.jobs / overall.jobs,
        cnodes=tally.cnodes,
        cnode_share=tally.cnodes / overall.cnodes,
        gpu_hour_share=hours,
        by_job=broken["by_job"],
        by_cnode=broken["by_cnode"],
        by_gpu_hour=broken["by_gpu_hour"] if hours is not None else None,
        bound=dict(tally.bound),
        idle=tally.idle,
        sizes=tuple(SizeCount(most, *tally.sizes[most]) for most in SIZES),
        models_known=tally.models_known,
        models_under_10gb=tally.models_under_10gb,
    )


def _part(tally: PartTally) -> PartStats:
    return PartStats(tally.mean, tally.over_share(0.5), tally.over_share(0.8), tally.quantiles())
