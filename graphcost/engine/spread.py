"""How far a step without communication may be off: an 80 % interval from what the step is made of.

Every group of operator classes adds its share of the time times its own spread, on a log
scale, fitted on published step times (``spread.toml``: table, split, coverage).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import expm1
from types import MappingProxyType
from typing import Any

from graphcost.hardware import Device, peak_dtype


@dataclass(frozen=True, slots=True)
class Spread:
    """The step lies between 1/(1 + ``low``) and 1 + ``high`` of the prediction; ``evidence`` says on what grounds."""

    low: float
    high: float
    evidence: str


GROUPS: Mapping[str, str] = MappingProxyType(
    {"conv": "conv", "depthwise": "depthwise", "host": "host", "matmul": "matmul", "attention": "matmul"}
    | {"recurrent": "matmul"}
)
"""Operator class -> group with a spread of its own; what moves bytes is one group, ``memory``."""


def group_of(op_class: str) -> str:
    """The group whose spread an operator class has."""
    return GROUPS.get(op_class, "memory")


NO_SPREAD = Spread(0.0, 0.0, "")
"""Of a prediction that makes no claim about its error."""


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("graphcost.engine").joinpath("spread.toml").read_text("utf-8"))


def spread_of(seconds: Mapping[str, float], device: Device, precision: str) -> Spread:
    """The interval of a step that spends ``seconds`` in each operator class (``host``: waiting for launches)."""
    table = _table()
    if device.curves:
        own = table["curves"]
        return Spread(own["low"], own["high"], f"curves measured on the machine; {own['source']}")
    whole = sum(seconds.values())
    low, high = (
        sum(part * table[side][group_of(name)] for name, part in seconds.items()) / whole if whole else 0.0
        for side in ("low", "high")
    )
    kind = f"{device.arch} {peak_dtype(precision)}"
    if kind in table["covered"]:
        return Spread(expm1(low), expm1(high), f"steps measured on {kind}")
    factor = table["uncovered_factor"]
    evidence = f"no measurement covers {kind}; wider by a factor of {factor:g}, assumed"
    return Spread(expm1(factor * low), expm1(factor * high), evidence)
