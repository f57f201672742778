"""Speeds from a measured table: samples/s by workers and servers, interpolated with linear radial functions.

Columns used: ``source``, ``model``, ``throughput``, and ``n_ps=.. n_workers=..`` in ``notes``. A file may hold
several experiments; they never mix. Interpolants go below zero beyond the measurements: speeds are held at 1 % of
the slowest measured. A point over four times the median of its model at equal workers is an error of
measurement and left out, counted in the note.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np

from graphcost.errors import DataFileError, UsageError
from graphcost.registry import did_you_mean
from graphcost.sched import Tasks
from graphcost.sim.jobs import SimCluster, TrainedModel
from graphcost.sim.speeds.base import can_train, check_known, check_served, counts_of

_TASKS = re.compile(r"n_ps=(\d+) n_workers=(\d+)")
_NEEDED = ("source", "model", "throughput", "notes")
_OUTLIER = 4.0
_FLOOR = 0.01
_NAMES = {"cnn-text-classification": "text-cnn"}
"""The table's names that differ from those of the fits."""


class TableSpeeds:
    """One experiment of a measured table; ``experiment`` is (a part of) its ``source``, where there are several."""

    def __init__(self, path: Path, experiment: str | None = None) -> None:
        points, self._source, dropped = _read(path, experiment)
        self._points = points
        self._weights = {name: _weights(*measured) for name, measured in points.items()}
        self._made: dict[tuple[str, int, int], float] = {}
        self.models = tuple(points)
        self.name = f"table:{path.name}"
        self.note = f"{self._source}; {sum(len(at) for at, _ in points.values())} measured points" + (
            f", {dropped} impossible ones left out" if dropped else ""
        )

    def check(self, model: TrainedModel) -> None:
        """Measured, with parameter servers."""
        check_served(model, self.name)
        check_known(model, self.models, self.name)

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        """By counts alone."""
        return self._rate(model, *counts_of(tasks))

    def most_samples_per_s(self, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
        """The same: placement does not matter."""
        return self._rate(model, workers, ps)

    def _rate(self, model: TrainedModel, workers: int, ps: int) -> float:
        if not can_train(model, workers, ps):
            return 0.0
        key = (model.name, workers, ps)
        if key not in self._made:
            at, rates = self._points[model.name]
            there = np.linalg.norm(at - np.array((workers, ps), float), axis=1)
            self._made[key] = max(float(there @ self._weights[model.name]), _FLOOR * float(rates.min()))
        return self._made[key]


def _weights(at: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Of a linear radial function at each measurement, so that every one is met."""
    distances = np.linalg.norm(at[:, None, :] - at[None, :, :], axis=2)
    found: np.ndarray = np.linalg.solve(distances, rates) if len(at) > 1 else np.array([0.0])
    return found


def _read(path: Path, experiment: str | None) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], str, int]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
            columns = reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(f"{path}: cannot be read as a table of speeds ({error})") from error
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise DataFileError(f"{path}: no column {missing[0]!r}; a table of speeds has {', '.join(_NEEDED)}")
    sources = list(dict.fromkeys(row["source"] for _, row in rows))
    chosen = [name for name in sources if experiment is None or experiment in name]
    if len(chosen) != 1:
        near = did_you_mean(experiment, sources) if experiment else ""
        raise UsageError(
            f"{path}: holds {len(sources)} experiments ({', '.join(sources)}), which must not be mixed; choose one "
            f"with --speed-source{near}"
        )
    measured: dict[str, dict[tuple[int, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for line, row in rows:
        if row["source"] != chosen[0]:
            continue
        counts = _TASKS.search(row["notes"] or "")
        rate = _positive(row["throughput"])
        if counts is None or rate is None:
            column = "notes" if counts is None else "throughput"
            raise DataFileError(f"{path}: row {line}, column {column}: {row[column]!r} gives no speed")
        measured[_NAMES.get(row["model"], row["model"])][int(counts[2]), int(counts[1])].append(rate)
    return _cleaned(measured, chosen[0])


def _cleaned(
    measured: dict[str, dict[tuple[int, int], list[float]]], source: str
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], str, int]:
    points, dropped = {}, 0
    for name, by_tasks in measured.items():
        mean = {tasks: sum(rates) / len(rates) for tasks, rates in by_tasks.items()}
        by_workers: dict[int, list[float]] = defaultdict(list)
        for (workers, _), rate in mean.items():
            by_workers[workers].append(rate)
        kept = {tasks: rate for tasks, rate in mean.items() if rate <= _OUTLIER * median(by_workers[tasks[0]])}
        dropped += len(mean) - len(kept)
        points[name] = (np.array(list(kept), float), np.array(list(kept.values())))
    return points, source, dropped


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if 0 < value < float("inf") else None
