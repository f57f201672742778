"""How far predictions may be off, table by table."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.validation.scoring import Scores

AT_LEAST = frozenset(
    {"rank_correlation", "winner_accuracy", "verdict_accuracy", "verdict_recall", "verdict_precision"}
)
"""Figures that are good when large."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A limit on one figure of a table's scores."""

    figure: str
    limit: float


@cache
def _limits() -> dict[str, Any]:
    return tomllib.loads(files("graphcost.validation").joinpath("tolerances.toml").read_text("utf-8"))


def tolerance_of(table: str) -> tuple[Tolerance, ...]:
    """Limits of the table called ``table``; the default's where it is not known."""
    known = [name for name in _limits() if table.startswith(name)]
    entry = _limits()[max(known, key=len)] if known else _limits()["default"]
    return tuple(Tolerance(figure, limit) for figure, limit in entry.items())


def broken(scores: Scores, limits: tuple[Tolerance, ...]) -> tuple[Tolerance, ...]:
    """The limits that ``scores`` do not keep; a figure that the table cannot give breaks none."""
    out = []
    for limit in limits:
        reached = getattr(scores, limit.figure)
        if reached is None:
            continue
        if reached < limit.limit if limit.figure in AT_LEAST else reached > limit.limit:
            out.append(limit)
    return tuple(out)
