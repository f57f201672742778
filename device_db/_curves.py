"""Measured curves in a device or server file: ``[curves."conv.forward"]`` with ``work`` and ``seconds``."""

from __future__ import annotations

from typing import Any

from graphcost.curves import RateCurve
from graphcost.device_db._reader import Table, is_number
from graphcost.hardware import FrozenMap


def read_curves(table: Table, key: str) -> FrozenMap[RateCurve]:
    """Every curve of the table ``key``; raises ``DataFileError`` for lists that are no curve."""
    value = table.data.get(key, {})
    if not isinstance(value, dict):
        table.fail(key, "must be a table of curves, name = { work = [...], seconds = [...] }")
    found = {}
    for name, entry in value.items():
        work, seconds = (_numbers(entry, part) for part in ("work", "seconds"))
        if not work or seconds is None or len(work) != len(seconds):
            table.fail(f"{key}.{name}", "must have lists work and seconds of equal length, numbers over 0")
        if list(work) != sorted(set(work)) or list(seconds) != sorted(seconds):
            table.fail(f"{key}.{name}", "must rise in work and not fall in seconds")
        found[name] = RateCurve(work, seconds)
    return FrozenMap(found)


def _numbers(entry: Any, part: str) -> tuple[float, ...] | None:
    value = entry.get(part) if isinstance(entry, dict) else None
    if not isinstance(value, list) or not all(is_number(item) and item > 0 for item in value):
        return None
    return tuple(float(item) for item in value)
