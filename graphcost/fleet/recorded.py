"""A job table from a recorded cluster trace, by a declared rule (``trace_rule.toml``): an example, and marked as one.

A trace tells how many GPUs a job had and for how long, at most an application. The rule adds a model, a batch and an
architecture; features then come from the model's graph, as ``fleet extract`` takes them of a manifest.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np

from graphcost._version import __version__
from graphcost.errors import UsageError
from graphcost.features import job_features
from graphcost.fleet.columns import REQUIRED
from graphcost.fleet.table import EXAMPLE_KEY, polars_module
from graphcost.fleet.writing import write_frames
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.placing import AnalysisOptions, resolve
from graphcost.sources import load_model
from graphcost.training import StepPlan, plan_step

_COLUMNS = (*REQUIRED, "dense_model_bytes", "sparse_model_bytes")


class RecordedJob(Protocol):
    """A row of a trace. ``duration_s``, else the bounds ``gpu_hours``, say how long; ``model``: None where unsaid."""

    @property
    def job_id(self) -> str: ...  # noqa: D102
    @property
    def gpus(self) -> int: ...  # noqa: D102
    @property
    def duration_s(self) -> float | None: ...  # noqa: D102
    @property
    def gpu_hours(self) -> tuple[float, float] | None: ...  # noqa: D102
    @property
    def model(self) -> str | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Rule:
    """``trace_rule.toml``. ``classes``: (up to so many GPU hours, models with weights), by growing hours."""

    mark: str
    fingerprint: str
    arch: Mapping[str, str]
    classes: tuple[tuple[float, Mapping[str, float]], ...]
    batch: Mapping[str, int]

    def arch_of(self, gpus: int, server_gpus: int) -> str:
        """The architecture of a job of that many GPUs."""
        return self.arch["one_gpu" if gpus == 1 else "one_server" if gpus <= server_gpus else "more"]

    def model_of(self, job: RecordedJob, uniform: float) -> str:
        """The trace's own, else one of its class, by a number in [0, 1)."""
        if job.model is not None:
            return job.model
        hours = job.gpus * (job.duration_s or 0.0) / 3600
        weights = next(models for most, models in self.classes if hours <= most)
        chosen = uniform * sum(weights.values())
        for name, weight in weights.items():
            chosen -= weight
            if chosen < 0:
                return name
        return name


@cache
def shipped_rule() -> Rule:
    """The rule that ships."""
    text = files("graphcost.fleet").joinpath("trace_rule.toml").read_text("utf-8")
    data = tomllib.loads(text)
    classes = tuple((float(one["up_to_gpu_hours"]), one["models"]) for one in data["classes"])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Rule(data["mark"], digest, data["arch"], classes, data["batch"])


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """What was written. ``mark``: what the file says about itself; ``models``, ``archs``: jobs by each."""

    mark: str
    jobs: int
    models: Mapping[str, int]
    archs: Mapping[str, int]


def extract_recorded(
    rows: Sequence[RecordedJob], trace: str, output: str, options: AnalysisOptions, *, seed: int = 0
) -> RecordedTable:
    """Write one job a row; ``trace`` names format and source, ``seed`` decides between models of one class.

    ``gpu_hours`` is written where every row says its run time. Raises ``UsageError`` for a model without a batch in
    the rule, and for an output that cannot be written.
    """
    pl = polars_module()
    rule = shipped_rule()
    server_gpus = resolve(options).placement.cluster.server.gpus
    draws = np.random.default_rng(seed).random(len(rows))
    models = [rule.model_of(row, float(draw)) for row, draw in zip(rows, draws, strict=True)]
    archs = [rule.arch_of(row.gpus, server_gpus) for row in rows]
    wanted = sorted({(model, arch, row.gpus) for row, model, arch in zip(rows, models, archs, strict=True)})
    features = _features(wanted, rule, options)
    values: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for row, model, arch in zip(rows, models, archs, strict=True):
        for name, value in {**features[model, arch, row.gpus], "job_id": row.job_id}.items():
            values[name].append(value)
    schema = {name: pl.String if name in ("job_id", "arch") else pl.Float64 for name in _COLUMNS}
    schema |= {"cnodes": pl.Int64, "batch": pl.Int64}
    if all(row.duration_s is not None for row in rows):
        values["gpu_hours"] = [row.gpus * (row.duration_s or 0.0) / 3600 for row in rows]
        schema["gpu_hours"] = pl.Float64
    mark = (
        f"EXAMPLE from the trace {trace}, {rule.mark}; graphcost {__version__} fleet extract --trace --seed {seed}, "
        f"trace_rule.toml {rule.fingerprint}"
    )
    frame = pl.DataFrame({name: values[name] for name in schema}, schema=schema)
    write_frames(output, iter([frame]), schema, {EXAMPLE_KEY: mark})
    return RecordedTable(mark, len(rows), dict(Counter(models).most_common()), dict(Counter(archs).most_common()))


def _features(
    wanted: Sequence[tuple[str, str, int]], rule: Rule, options: AnalysisOptions
) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Columns by (model, architecture, GPUs); every model is read and planned once."""
    plans: dict[str, StepPlan] = {}
    found = {}
    for model, arch, gpus in wanted:
        if model not in plans:
            if model not in rule.batch:
                raise UsageError(f"trace_rule.toml: [batch] has no {model}, which the trace names; add it there")
            load = LoadOptions(batch=rule.batch[model])
            plans[model] = plan_step(build_graph(load_model(model, load)), resolve(options).recipe)
        choice = resolve(replace(options, arch=arch, gpus=gpus))
        columns = asdict(job_features(plans[model], choice.arch, choice.placement))
        found[model, arch, gpus] = {name: columns[name] for name in _COLUMNS if name in columns}
    return found
