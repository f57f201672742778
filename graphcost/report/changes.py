"""How differences read: growth, settings, operators; the same words in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcost.diffing import METRICS, Delta, OperatorChange, OperatorChanges
from graphcost.units import format_bytes, format_count, format_flops


def growth(delta: Delta) -> str:
    """``+3.1 %``; shares by their points.

    >>> growth(Delta("comm_share", 0.1, 0.125, 0.25)), growth(Delta("step_s", 2.0, 1.0, -0.5))
    ('+2.5 points', '-50.0 %')
    """
    if delta.metric == "comm_share":
        return f"{(delta.head - delta.base) * 100:+.1f} points"
    return "new" if delta.change is None else f"{delta.change * 100:+.1f} %"


def value(delta: Delta) -> str:
    """The head's value with its unit."""
    return METRICS[delta.metric].show(delta.head)


def before(delta: Delta) -> str:
    """The base's value with its unit."""
    return METRICS[delta.metric].show(delta.base)


def label(delta: Delta) -> str:
    """What the metric is called."""
    return METRICS[delta.metric].label


def operator_line(change: OperatorChange) -> str:
    """``+12 LayerNormalization (each 1.5 MFLOP, 12 MB, 1.54 k parameters)``; for a change, from what to what."""
    flops = _from_to(change.base_flops, change.head_flops, format_flops)
    moved = _from_to(change.base_bytes, change.head_bytes, format_bytes)
    params = _from_to(change.base_params, change.head_params, format_count)
    numbers = [flops, moved] + ([f"{params} parameters"] if params != "0" else [])
    each = "each " if change.count > 1 else ""
    sign = {"added": "+", "removed": "-", "changed": "~"}[change.what]
    name = f" {change.module or change.name}" if change.count == 1 else f", first {change.module or change.name}"
    return f"{sign}{change.count} {change.op_type}{name} ({each}{', '.join(numbers)})"


def operators_summary(changes: OperatorChanges) -> str:
    """How many operators were added, removed, changed."""
    parts = [f"{count} {what}" for what in ("added", "removed", "changed") if (count := changes.count(what))]
    if changes.rewired:
        parts.append(f"{changes.rewired} with other neighbours, at the same cost")
    return ", ".join(parts) if parts else "no operator changed"


def counts_line(counts: Mapping[str, Sequence[int]]) -> str:
    """``Conv 53 -> 104``, by type."""
    return ", ".join(f"{name} {pair[0]} -> {pair[1]}" for name, pair in counts.items())


def _from_to(base: int | None, head: int | None, show: object) -> str:
    assert callable(show)
    if base is None or head is None:
        return str(show(head if base is None else base))
    return str(show(head)) if base == head else f"{show(base)} -> {show(head)}"
