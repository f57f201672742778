"""The few numbers of a result that are budgeted, kept in a baseline and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from graphcost.result import OpInfo
from graphcost.units import format_bytes, format_count, format_flops, format_seconds, format_share

DIGITS = 5
"""Significant digits that are kept and compared: the last bits of a prediction differ between machines."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a result. ``paths``: where it stands in the JSON; several are added."""

    key: str
    label: str
    paths: tuple[tuple[str, str], ...]
    show: Callable[[float], str]
    exact: bool

    def of(self, data: Mapping[str, Any]) -> float | None:
        """The value in a result's plain data; None where that does not hold it."""
        total: float = 0
        for part, name in self.paths:
            section = data.get(part)
            for step in name.split("."):
                section = section.get(step) if isinstance(section, Mapping) else None
            if not isinstance(section, (int, float)):
                return None
            total += section
        return total if self.exact else _rounded(total)

    def differs(self, base: float, head: float) -> bool:
        """Whether two values are two: exact counts by every digit, predictions by those that are kept."""
        return base != head if self.exact else not isclose(base, head, rel_tol=10.0 ** (1 - DIGITS))


def _metric(key: str, label: str, *paths: str, show: Callable[[float], str], exact: bool = True) -> Metric:
    split = [path.partition(".") for path in paths]
    return Metric(key, label, tuple((part, name) for part, _, name in split), show, exact)


METRICS: Mapping[str, Metric] = {
    metric.key: metric
    for metric in (
        _metric("step_s", "step", "step.step_s", show=format_seconds, exact=False),
        _metric("comm_share", "communication", "step.comm_share", show=format_share, exact=False),
        _metric("exposed_comm_s", "exposed", "step.exposed_comm_s", show=format_seconds, exact=False),
        _metric("peak_bytes", "memory", "training.memory.peak_bytes", show=format_bytes),
        _metric("params", "parameters", "graph.params", show=format_count),
        _metric(
            "flops", "forward FLOP", "graph.matmul_flops", "graph.elementwise_flops", show=format_flops
        ),
        _metric("traffic_bytes", "forward bytes", "graph.read_bytes", "graph.write_bytes", show=format_bytes),
        _metric("gradient_bytes", "gradients", "training.gradient_bytes", show=format_bytes),
        _metric("ops", "operators", "graph.ops", show=format_count),
    )
}  # fmt: skip

_SETTINGS = (
    ("placement", "arch"), ("placement", "gpus"), ("placement", "servers"), ("placement", "ps"),
    ("placement", "cluster"), ("placement", "device"), ("placement", "batch_per_gpu"), ("placement", "accumulate"),
    ("placement", "profile"), ("placement", "execution"), ("placement", "overlap"), ("placement", "buckets"),
    ("training", "precision"), ("training", "master_weights"), ("training", "trainer"), ("training", "optimizer"),
)  # fmt: skip
"""What was asked for, and not what came out: a difference here explains the others."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One model's metrics, how often it uses each operator, and under which settings.

    A metric, or ``operators``, is absent where the result does not hold it.
    """

    metrics: Mapping[str, float]
    operators: Mapping[str, int]
    settings: Mapping[str, str | int]


def snapshot_of(data: Mapping[str, Any], ops: tuple[OpInfo, ...] = ()) -> Snapshot:
    """The snapshot of a result's plain data (``Analysis.to_dict``, or its JSON)."""
    found = {key: metric.of(data) for key, metric in METRICS.items()}
    settings = {name: data.get(part, {}).get(name) for part, name in _SETTINGS}
    return Snapshot(
        metrics={key: value for key, value in found.items() if value is not None},
        operators=dict(sorted(Counter(op.op_type for op in ops).items())),
        settings={name: value for name, value in settings.items() if value is not None},
    )


def changed_settings(base: Snapshot, head: Snapshot) -> list[str]:
    """``gpus 8 -> 16`` for every setting that both know and that differs."""
    return [
        f"{name} {base.settings[name]} -> {value}"
        for name, value in head.settings.items()
        if name in base.settings and base.settings[name] != value
    ]


def _rounded(value: float) -> float:
    """To ``DIGITS`` significant digits.

    >>> _rounded(0.0123456789)
    0.012346
    """
    return float(f"{value:.{DIGITS}g}")
