"""A result as the numbers that the page's scripts draw. Seconds are rounded to four digits, counts are exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphcost.fitting import CONTEXT_BYTES
from graphcost.report import palette
from graphcost.report.parts import parts_of
from graphcost.report.roofline import points_of
from graphcost.report.timeline import memory_timeline
from graphcost.result import Analysis, MessageInfo, OpInfo

MOST_POINTS = 600
"""Points of the roofline plot; an SVG with many more is slow, and they cover each other."""

MOST_TENSORS = 15
"""Bars of the plot of tensors; the others are one more."""


def model_data(r: Analysis) -> dict[str, Any]:
    """Everything that is drawn for one model."""
    return {
        "name": r.model.name,
        "step": step_data([r], [r.model.name]),
        "roofline": _roofline(r),
        "tensors": _tensors(r),
        "messages": _messages(r.communication),
        "memory": _memory(r),
        "archs": step_data(r.details.architectures or (), None) if r.details else None,
        "ops": operator_columns(r.ops),
    }


def step_data(results: Sequence[Analysis], labels: Sequence[str] | None) -> dict[str, Any]:
    """Stacked bars: every part of the step, and the communication that runs beside it."""
    named = labels or [r.placement.arch for r in results]
    parts: dict[str, list[float]] = {name: [] for name in palette.PARTS}
    for r in results:
        for part in parts_of(r):
            parts[part.name].append(_four(part.seconds))
        parts[palette.HIDDEN].append(_four(r.step.hidden_comm_s))
    return {"labels": named, "parts": parts}


def _roofline(r: Analysis) -> dict[str, Any] | None:
    if r.details is None or r.predicted is None or not r.predicted.ops:
        return None
    points = points_of(r.predicted.ops)
    total_s = sum(point.time_s for point in points)
    shown = points[:MOST_POINTS]
    return {
        "mem_bytes_per_s": r.details.mem_bytes_per_s,
        "roofs": [[roof.name, roof.flops_per_s] for roof in r.details.roofs],
        "shown_share": sum(point.time_s for point in shown) / total_s if total_s else 1.0,
        "points": [
            [
                _four(point.flop_per_byte), _four(point.flops_per_s), _four(point.time_s / total_s), point.bound,
                point.name, point.op_type, point.phase, point.count, _four(point.time_s),
            ]
            for point in shown
        ],
    }  # fmt: skip


def _tensors(r: Analysis) -> list[tuple[str, int]] | None:
    """The largest gradients by bytes sent, and the sum of the others; None where nothing is sent."""
    if r.details is None or not any(message.bytes for message in r.communication):
        return None
    sizes = sorted(((g.param, g.sent_bytes) for g in r.details.gradients), key=lambda pair: -pair[1])
    largest, rest = sizes[:MOST_TENSORS], sizes[MOST_TENSORS:]
    others = [(f"{len(rest)} others", sum(size for _, size in rest))] if rest else []
    return [*largest, *others]


def _messages(messages: Iterable[MessageInfo]) -> dict[str, Any]:
    sent = list(messages)
    return {
        "labels": [f"{m.what}, {m.link}" if m.link != "none" else m.what for m in sent],
        "exposed": [_four(m.exposed_s) for m in sent],
        "hidden": [_four(max(0.0, m.time_s - m.exposed_s)) for m in sent],
    }


def _memory(r: Analysis) -> dict[str, Any] | None:
    line = memory_timeline(r)
    if line is None or r.details is None:
        return None
    return {
        "unit": line.unit,
        "x": [_four(x) for x in line.x],
        "bands": {name: list(values) for name, values in line.bands.items()},
        "phases": [[name, _four(begin), _four(end)] for name, begin, end in line.phases],
        "limit": r.details.mem_bytes - CONTEXT_BYTES,
    }


def operator_columns(ops: Sequence[OpInfo]) -> dict[str, Any]:
    """Every operator, column by column; words that repeat are written once."""
    words = {
        "type": _words(op.op_type for op in ops),
        "module": _words(op.module for op in ops),
        "bound": _words(op.bound if op.counted else "no rule" for op in ops),
        "source": _words(op.efficiency_source for op in ops),
    }
    return {
        **words,
        "name": [op.name for op in ops],
        "time": [_maybe(op.time_s) for op in ops],
        "forward": [_maybe(op.forward_s) for op in ops],
        "backward": [_maybe(op.backward_s) for op in ops],
        "flops": [op.matmul_flops + op.elementwise_flops if op.counted else None for op in ops],
        "bytes": [op.read_bytes + op.write_bytes if op.counted else None for op in ops],
        "params": [op.params for op in ops],
        "efficiency": [_maybe(op.efficiency) for op in ops],
    }


def _words(values: Iterable[str]) -> Mapping[str, Any]:
    index: dict[str, int] = {}
    codes = [index.setdefault(value, len(index)) for value in values]
    return {"words": list(index), "codes": codes}


def _maybe(value: float | None) -> float | None:
    return None if value is None else _four(value)


def _four(value: float) -> float:
    return float(f"{value:.4g}")
