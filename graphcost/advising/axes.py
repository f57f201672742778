"""Along one resource: where the verdict turns.

A resource's values are rungs of a ladder: counts one by one, rates to three significant digits
of the unit that they are told in. So a border has two neighbouring rungs, and what is told is
exactly what was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import floor, log10

from graphcost.errors import GraphcostError
from graphcost.fitting import narrow
from graphcost.placing import AnalysisOptions
from graphcost.predict import StepTime
from graphcost.resources import Resource
from graphcost.verdict import Verdict
from graphcost.what_if import Outcome, WhatIf

UNLIMITED = 1e15
"""Stands for an infinite rate in bytes/s or FLOP/s: no link or device comes near, and what it takes is nothing."""

_RUNGS = 900
"""Three-digit numbers of a decade."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs of a resource by their number."""

    resource: Resource

    def value(self, rung: int) -> float:
        """The value of a rung in base units: what its text parses to."""
        if self.resource.whole:
            return float(rung)
        decade, digits = divmod(rung, _RUNGS)
        raw = (100 + digits) * 10.0 ** (decade - 2) * self.resource.shown_unit
        return self.resource.parse(self.resource.show(raw))

    def below(self, value: float) -> int:
        """The highest rung that is not over ``value``."""
        if self.resource.whole:
            return int(value)
        shown = value / self.resource.shown_unit
        decade = floor(log10(shown))
        digits = floor(shown / 10.0 ** (decade - 2) * (1 + 1e-12))
        return _RUNGS * decade + min(max(digits, 100), 999) - 100

    def above(self, value: float) -> int:
        """The lowest rung that is not under ``value``."""
        rung = self.below(value)
        return rung if self.value(rung) >= value * (1 - 1e-12) else rung + 1


def path(ladder: Ladder, start: int, end: int, ratio: float) -> Iterator[int]:
    """Rungs from ``start`` to ``end``, each the last one's value times ``ratio`` or the next rung."""
    up = end > start
    rung = start
    while rung != end:
        value = ladder.value(rung) * (ratio if up else 1 / ratio)
        rung = min(end, max(rung + 1, ladder.below(value))) if up else max(end, min(rung - 1, ladder.above(value)))
        yield rung


@dataclass(slots=True)
class Axis:
    """Outcomes along one resource, each rung tried once. ``apply``: further changes, made first."""

    what_if: WhatIf
    resource: Resource
    apply: Callable[[AnalysisOptions], AnalysisOptions] = lambda options: options
    known: dict[int, Outcome] = field(default_factory=dict)
    refusal: str | None = None

    @property
    def ladder(self) -> Ladder:
        """The resource's rungs."""
        return Ladder(self.resource)

    def options(self, rung: int) -> AnalysisOptions:
        """The base's options at a rung."""
        return self.resource.put(self.apply(self.what_if.base.options), self.ladder.value(rung))

    def outcome(self, rung: int) -> Outcome:
        """The outcome at a rung; raises where it cannot be."""
        if rung not in self.known:
            self.known[rung] = self.what_if.at(self.options(rung))
        return self.known[rung]

    def walk(
        self, start: int, end: int, ratio: float, *, until: Callable[[Outcome], bool] | None = None
    ) -> list[int]:
        """Try rungs from ``start`` to ``end``: those tried, in order; fewer where one is refused, or at ``until``."""
        tried: list[int] = []
        for rung in (start, *path(self.ladder, start, end, ratio)):
            try:
                found = self.outcome(rung)
            except GraphcostError as error:
                self.refusal = str(error)
                break
            tried.append(rung)
            if until is not None and until(found):
                break
        return tried

    def border(self, goal: Goal, tried: Sequence[int]) -> tuple[int, int] | None:
        """The first two neighbouring rungs, in the order of ``tried``, between which ``goal`` turns; None without."""
        for near, far in pairwise(tried):
            if goal.met(self.outcome(near)) != goal.met(self.outcome(far)):
                return self._narrowed(goal, near, far)
        return None

    def turns(self, goal: Goal) -> int:
        """How often ``goal`` turned over all rungs tried."""
        met = [goal.met(self.known[rung]) for rung in sorted(self.known)]
        return sum(one != other for one, other in pairwise(met))

    def _narrowed(self, goal: Goal, near: int, far: int) -> tuple[int, int]:
        """Neighbours between two rungs: the last that is like ``near``, and the first that is not."""
        side = 1 if far > near else -1
        known = {}
        excess = partial(self._excess, goal, goal.met(self.outcome(near)), side)
        for rung in (near, far):
            known[side * rung] = excess(side * rung)
        last = narrow(excess, known, side * near, side * far)
        return side * last, side * (last + 1)

    def _excess(self, goal: Goal, like: bool, side: int, position: int) -> int:
        """Not above zero while ``goal`` is as it was; its size guides the search."""
        found = self.outcome(side * position)
        margin = round(abs(goal.margin_s(found.step, found.options.max_comm_share)) * 1e12)
        return -margin if goal.met(found) == like else max(1, margin)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a model is to be: ``met``, and by how many seconds of communication it is or is not."""

    name: str
    met: Callable[[Outcome], bool]
    margin_s: Callable[[StepTime, float], float]


def _clear_margin_s(step: StepTime, limit: float) -> float:
    slow_s = step.exposed_comm_s * (1 + step.comm_spread)
    return limit * slow_s / step.comm_share_high - slow_s if step.comm_share_high else limit * step.step_s


CLEAR = Goal("clear", lambda outcome: outcome.verdict is Verdict.CLEAR, _clear_margin_s)
EVEN = Goal(
    "even",
    lambda outcome: outcome.step.comm_share <= outcome.options.max_comm_share,
    lambda step, limit: limit * step.step_s - step.exposed_comm_s,
)
