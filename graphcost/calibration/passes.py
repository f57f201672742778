"""The passes of a calibration: everything once, several times over, then one device and one cluster file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from graphcost.calibration.allocator import keep_memory
from graphcost.calibration.cases import cases
from graphcost.calibration.files import cluster_table, device_table
from graphcost.calibration.measuring import Effort, Sample, measure, measure_updates, merged
from graphcost.calibration.workers import Together, measure_together


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass found: this process alone, and several workers at once where they were asked for."""

    alone: tuple[Sample, ...]
    together: Together | None = None


def alone(effort: Effort, place: str) -> tuple[Sample, ...]:
    """One pass over every layer and optimizer step in this process, on a CPU with one thread."""
    import torch

    if place == "cpu":
        keep_memory()
        torch.set_num_threads(1)
    dtypes = ("float32",) if place == "cpu" else ("float32", "tf32", "float16", "bfloat16")
    layers = [one for dtype in dtypes for one in measure(cases(), effort, place, dtype)]
    return (*layers, *measure_updates(effort, place))


def one_pass(effort: Effort, place: str, workers: int | None = None, backend: str = "gloo") -> Pass:
    """Everything once; raises ``UsageError`` where a worker fails."""
    return Pass(alone(effort, place), measure_together(workers, effort, backend) if workers is not None else None)


def tables(passes: Sequence[Pass], place: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The content of a device file and, of passes with workers, of a cluster file: of every timing the median."""
    device = device_table(merged(one.alone for one in passes), place)
    together = [one.together for one in passes if one.together is not None]
    if not together:
        return device, None
    first = together[0]
    found = replace(
        first,
        all_reduce_s={size: median(one.all_reduce_s[size] for one in together) for size in first.all_reduce_s},
        interference=median(one.interference for one in together),
        samples=tuple(merged(one.samples for one in together)),
    )
    return device, cluster_table(found, device_table(found.samples, place))
