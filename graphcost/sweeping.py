"""``graphcost sweep`` as a function: one step over values of each resource, alone or combined.

After the hardware study of PAI (Table III of arXiv 1910.05930): one resource varies, the others
stay; a speed-up is against the base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import log, prod
from typing import Any

from graphcost.errors import GraphcostError, UsageError
from graphcost.placing import AnalysisOptions
from graphcost.resources import RESOURCES, Resource
from graphcost.result import Analysis
from graphcost.what_if import Outcome, WhatIf, no_difference

MOST_ROWS = 10_000
"""assumed: a longer table is a mistake; it would take minutes."""

_RATE_STEP = 1.05
"""Elasticities of rates are central differences over so much up and down."""

_NOTHING = 1e-9
"""Relative change of a step under which it is rounding."""

Setting = tuple[str, float]
"""A resource's name and a value in base units."""


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of values: the outcome, or why there is none.

    ``speedup``: the base's step over this one's. ``throughput_speedup``: samples per second over the base's.
    """

    settings: tuple[Setting, ...]
    outcome: Outcome | None
    refusal: str | None
    speedup: float | None
    throughput_speedup: float | None


@dataclass(frozen=True, slots=True)
class Elasticity:
    """``d ln step / d ln resource`` at the base: -1 means that the step is that resource's alone.

    ``over``: the two values that it was taken between. None where they could not be tried. ``note``: what a
    reader of the figures would otherwise miss.
    """

    resource: str
    base: float | None
    over: tuple[float, float] | None
    step: float | None
    throughput: float | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """A model's base, its rows in the order of the values given, and the elasticities, largest first."""

    base: Outcome
    analysis: Analysis
    varied: tuple[str, ...]
    rows: tuple[Row, ...]
    elasticities: tuple[Elasticity, ...]
    grid: bool

    def rows_of(self, name: str) -> tuple[Row, ...]:
        """The rows in which the resource varies alone."""
        return tuple(row for row in self.rows if [one for one, _ in row.settings] == [name])


def sweep_model(
    source: Any,
    options: AnalysisOptions,
    varied: Mapping[str, Sequence[float]],
    *,
    grid: bool = False,
    example_inputs: Any = None,
) -> Sweep:
    """Predict ``source`` at every value of ``varied`` (resource -> values in base units), others at the base.

    ``grid``: every combination instead of one resource at a time. The model is loaded once, and once
    per other batch. What a placement or a model cannot do is a row with the reason. Raises
    ``UnknownNameError`` for a resource that is none, and what ``analyze`` raises.
    """
    resources = [RESOURCES.find(name) for name in varied]
    count = prod(map(len, varied.values())) if grid else sum(map(len, varied.values()))
    if not count:
        raise UsageError("nothing to vary; name a resource and values, e.g. --vary network=10,25,100Gb/s")
    if count > MOST_ROWS:
        raise UsageError(f"{count:,} combinations: at most {MOST_ROWS:,} rows; leave out values or --grid")
    what_if = WhatIf(source, options, example_inputs)
    rows = [_row(what_if, settings) for settings in _settings(resources, varied, grid=grid)]
    elasticities = [_explained(_elasticity(what_if, resource), rows, what_if.base) for resource in resources]
    return Sweep(
        base=what_if.base,
        analysis=what_if.analysis(options, "sweep"),
        varied=tuple(varied),
        rows=tuple(rows),
        elasticities=tuple(sorted(elasticities, key=lambda one: -abs(one.step or 0.0))),
        grid=grid,
    )


def _settings(
    resources: Sequence[Resource], varied: Mapping[str, Sequence[float]], *, grid: bool
) -> Iterator[tuple[tuple[Resource, float], ...]]:
    each = [[(resource, value) for value in varied[resource.name]] for resource in resources]
    if grid:
        yield from product(*each)
    else:
        yield from ((one,) for column in each for one in column)


def _row(what_if: WhatIf, settings: Sequence[tuple[Resource, float]]) -> Row:
    options = what_if.base.options
    for resource, value in settings:
        options = resource.put(options, value)
    named = tuple((resource.name, value) for resource, value in settings)
    try:
        found = what_if.at(options)
    except GraphcostError as error:
        return Row(named, None, str(error), None, None)
    base = what_if.base
    speedup = base.step.step_s / found.step.step_s if found.step.step_s else None
    gain = found.work_per_s / base.work_per_s if base.work_per_s else None
    return Row(named, found, None, speedup, gain)


def _elasticity(what_if: WhatIf, resource: Resource) -> Elasticity:
    """By a central difference; of a count, between half of it and twice, or from one up."""
    base = what_if.base
    now = resource.of(base.options, base.choice, base.batch)
    if now is None:
        return Elasticity(resource.name, None, None, None, None)
    low, high = (max(1.0, now // 2), now * 2) if resource.whole else (now / _RATE_STEP, now * _RATE_STEP)
    found = [_row(what_if, [(resource, value)]).outcome for value in (low, high)]
    if found[0] is None:  # e.g. fewer GPUs than the servers that were asked for
        low, found[0] = now, base
    if found[1] is None:
        high, found[1] = now, base
    at_low, at_high = found
    if at_low is None or at_high is None or low == high or not at_low.step.step_s or not at_high.step.step_s:
        return Elasticity(resource.name, now, None, None, None)
    ratio = log(high / low)
    return Elasticity(
        resource.name,
        now,
        (low, high),
        log(at_high.step.step_s / at_low.step.step_s) / ratio,
        log(at_high.work_per_s / at_low.work_per_s) / ratio,
    )


def _explained(found: Elasticity, rows: Sequence[Row], base: Outcome) -> Elasticity:
    """With a note where the resource changes nothing, neither near the base nor at any value tried alone."""
    alone = [row.outcome for row in rows if [name for name, _ in row.settings] == [found.resource]]
    changes = [one.step.step_s / base.step.step_s - 1 for one in alone if one is not None]
    if found.step is None or any(abs(change) > _NOTHING for change in (found.step, *changes)):
        return found
    return replace(found, note=no_difference(found.resource, base))
