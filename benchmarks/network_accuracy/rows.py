"""Measured rows with a single-GPU step at the same batch, and how each ran."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from graphcost.engine.timeline import Overlap

Cells = Mapping[str, str]

EFFICIENCIES = (0.05, 1.12)
"""Outside of this the batch or the machine changed between the rows."""

BASELINE_SPREAD = 1.10
"""Single-GPU rows that differ by more say nothing about one of them."""


@dataclass(frozen=True)
class Run:
    """How a row ran: ``arch`` as graphcost's, ``style`` of parameter servers, ``bucketing`` by name."""

    cluster: str
    gpus: int
    servers: int
    arch: str = "allreduce"
    style: str = "byteps"
    ps: int = 0
    overlap: Overlap = Overlap.BUCKETED
    bucketing: str = "ddp"
    device: str = ""


@dataclass(frozen=True)
class Row:
    """Seconds of a step on one GPU and on many; ``wait_s`` where it was measured beyond that of one GPU."""

    table: str
    model: str
    run: Run
    single_s: float
    step_s: float
    wait_s: float | None
    pair: tuple[str, ...] = ()  # rows with equal pairs differ in nothing but the architecture

    @property
    def efficiency(self) -> float:
        return self.single_s / self.step_s

    @property
    def share(self) -> float:
        """Exposed communication where it was measured, else what scaling lost."""
        return 1 - self.efficiency if self.wait_s is None else self.wait_s / (self.single_s + self.wait_s)


def read(folder: Path, name: str) -> list[Cells]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def matched(
    table: str,
    rows: Iterable[Cells],
    run_of: Callable[[Cells], Run | str],
    keys: tuple[str, ...],
    skipped: Counter[str],
) -> Iterator[Row]:
    """Rows on several GPUs with the median of the single-GPU rows that agree in ``keys``.

    ``run_of`` gives the run, or the reason why there is none.
    """
    rows = [row for row in rows if row["step_time_ms"] and row["phase"] == "train"]
    alone: dict[tuple[str, ...], list[Cells]] = defaultdict(list)
    for row in rows:
        if row["n_gpus"] == "1" and row["grad_accum"] in ("", "1"):
            alone[tuple(row[key] for key in keys)].append(row)
    for row in rows:
        if row["n_gpus"] in ("", "1"):
            continue
        run = "accumulates" if row["grad_accum"] not in ("", "1") else run_of(row)
        single = alone[tuple(row[key] for key in keys)]
        if isinstance(run, str):
            skipped[run] += 1
            continue
        times = [float(one["step_time_ms"]) for one in single]
        if not times or max(times) > BASELINE_SPREAD * min(times):
            skipped["no single-GPU row" if not times else "single-GPU rows differ"] += 1
            continue
        wait_s = None
        if row["comm_time_ms"]:
            wait_s = (
                max(0.0, float(row["comm_time_ms"]) - median(float(one["comm_time_ms"]) for one in single)) * 1e-3
            )
        made = Row(table, row["model_id"], run, median(times) * 1e-3, float(row["step_time_ms"]) * 1e-3, wait_s)
        if EFFICIENCIES[0] <= made.efficiency <= EFFICIENCIES[1]:
            yield made
        else:
            skipped["efficiency out of range"] += 1
