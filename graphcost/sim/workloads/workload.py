"""A declared workload: cluster, models, arrivals and lengths, from a TOML file that names its sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphcost.errors import DataFileError, UnknownNameError
from graphcost.registry import did_you_mean
from graphcost.sched import Resources
from graphcost.sim.jobs import TrainedModel


@dataclass(frozen=True, slots=True)
class Workload:
    """``arrivals`` and ``lengths`` are the file's tables; ``weights`` go with ``models``."""

    name: str
    title: str
    source: str
    slot_s: float
    speeds: str
    nodes: int
    cpus: float
    gpus: float
    count: int
    max_workers: int
    max_ps: int
    requested_workers: int
    requested_ps: int
    arrivals: Mapping[str, Any]
    lengths: Mapping[str, Any]
    models: tuple[TrainedModel, ...]
    weights: tuple[float, ...]


def workload_names() -> tuple[str, ...]:
    """Those that ship."""
    folder = files("graphcost.sim.workloads")
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_workload(name: str) -> Workload:
    """A shipped workload, or a TOML file of one; raises ``UnknownNameError`` or ``DataFileError``."""
    if name in workload_names():
        text = files("graphcost.sim.workloads").joinpath(f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataFileError(f"{name}: cannot be read as a workload ({error})") from error
    else:
        raise UnknownNameError(
            f"no workload named {name!r}{did_you_mean(name, workload_names())} ({', '.join(workload_names())}, "
            "or a .toml file)"
        )
    try:
        return _read(Path(name).stem, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(f"{name}: no TOML ({error})") from error
    except KeyError as error:
        raise DataFileError(f"{name}: {error.args[0]!r} is missing; see the shipped workload dl2-release") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DataFileError(f"{name}: a value of the wrong kind ({error})") from error


def _read(name: str, data: Mapping[str, Any]) -> Workload:
    jobs, cluster = data["jobs"], data["cluster"]
    workload = Workload(
        name=name,
        title=str(data["title"]),
        source=str(data["source"]),
        slot_s=float(data["slot_s"]),
        speeds=str(data["speeds"]),
        nodes=int(cluster["nodes"]),
        cpus=float(cluster["cpus"]),
        gpus=float(cluster["gpus"]),
        count=int(jobs["count"]),
        max_workers=int(jobs["max_workers"]),
        max_ps=int(jobs["max_ps"]),
        requested_workers=int(jobs["requested_workers"]),
        requested_ps=int(jobs["requested_ps"]),
        arrivals=data["arrivals"],
        lengths=data["lengths"],
        models=tuple(_model(entry) for entry in data["models"]),
        weights=tuple(float(entry.get("weight", 1.0)) for entry in data["models"]),
    )
    _check(workload)
    return workload


def _model(entry: Mapping[str, Any]) -> TrainedModel:
    worker, ps = entry["worker"], entry.get("ps")
    return TrainedModel(
        name=str(entry["name"]),
        batch=float(entry["batch"]),
        samples_per_epoch=float(entry["samples_per_epoch"]),
        worker=Resources.of(worker["cpus"], worker["gpus"]),
        ps=None if ps is None else Resources.of(ps["cpus"], ps["gpus"]),
        batch_grows=bool(entry.get("batch_grows", False)),
        noise_scale=entry.get("noise_scale"),
    )


_PATTERNS = {
    "counts": ("max_per_slot", "offsets", "counts"),
    "poisson": ("mean_per_slot",),
    "uniform": ("max_per_slot",),
}


def _check(workload: Workload) -> None:
    """What the generator reads is there and can be; raises ``KeyError`` or ``ValueError``."""
    pattern = workload.arrivals["pattern"]
    if pattern not in _PATTERNS:
        raise ValueError(f"[arrivals] pattern {pattern!r}; known: {', '.join(_PATTERNS)}")
    for key in _PATTERNS[pattern]:
        values = workload.arrivals[key]
        if min(values if isinstance(values, list) else [values]) <= 0:
            raise ValueError(f"[arrivals] {key} must be over 0")
    lengths = workload.lengths
    by, models = lengths["by"], lengths["models"]
    if by not in ("epochs", "time") or models not in ("by-bucket", "by-weight"):
        raise ValueError(f"[lengths] by {by!r}, models {models!r}; known: epochs, time; by-bucket, by-weight")
    buckets = len(lengths["mean_min"])
    if len(lengths["probabilities"]) != buckets or abs(sum(lengths["probabilities"]) - 1) > 1e-3:
        raise ValueError(f"[lengths] needs {buckets} probabilities that add up to 1")
    if models == "by-bucket" and len(workload.models) != buckets:
        raise ValueError(f"[lengths] by-bucket: {buckets} buckets need as many models, not {len(workload.models)}")
    if by == "epochs" and min(lengths["longest_min"], lengths["epochs_at_longest"]) <= 0:
        raise ValueError("[lengths] longest_min and epochs_at_longest must be over 0")
    for model in workload.models:
        if min(model.batch, model.samples_per_epoch) <= 0 or min(model.worker.cpu_milli, model.worker.gpu_milli) < 0:
            raise ValueError(f"model {model.name}: batch and samples_per_epoch over 0, demands not below")
