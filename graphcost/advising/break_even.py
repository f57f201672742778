"""Break-even values: along every resource, where the verdict turns, and the changes that this makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from graphcost.advising.axes import CLEAR, EVEN, UNLIMITED, Axis, Goal, Ladder
from graphcost.advising.changes import Apply, Change, Effort
from graphcost.advising.result import BorderInfo, BreakEvenInfo, SideInfo
from graphcost.placing import AnalysisOptions
from graphcost.predict import Profile
from graphcost.resources import RESOURCES, Resource
from graphcost.verdict import Verdict
from graphcost.what_if import Outcome, WhatIf, no_difference

FARTHEST = 1e4
"""Rates are tried one by one up to so many times the base's, then without limit."""

LARGEST_FACTOR = 1024
"""Batches and micro-batches are tried up to so many times the base's."""

MOST_GPUS = 1 << 16
"""assumed: no job is larger."""

_PARALLEL = {"gpus", "servers", "ps"}


@dataclass(frozen=True, slots=True)
class Searched:
    """A search along one resource: the border values, the axis it walked, and why it ended early."""

    resource: Resource
    axis: Axis
    tried: tuple[int, ...]
    clear: tuple[int, int] | None
    even: tuple[int, int] | None
    info: BreakEvenInfo | None

    @property
    def refusal(self) -> str | None:
        """Why no more values could be tried; None where the search ran its course or a count ended it."""
        return self.axis.refusal if self.resource.name not in _PARALLEL else None


def searched(what_if: WhatIf) -> list[Searched]:
    """For a model over its limit: where every resource would take it under."""
    found = [
        _find(what_if, "batch", LARGEST_FACTOR, 2.0, first=True),
        *([_find(what_if, "accumulate", LARGEST_FACTOR, 2.0, first=True)] if _calibrated(what_if) else []),
        _find(what_if, "gpus", 0.0, 1.1),
        _find(what_if, "gpus", 4.0, 1.1),
        *([_find(what_if, "ps", 64.0, 1.5, first=True)] if what_if.base.choice.placement.ps else []),
        *(_find(what_if, name, FARTHEST, 1.2) for name in ("network", "nvlink", "pcie")),
    ]
    return [one for one in found if one is not None]


def margins(what_if: WhatIf) -> list[Searched]:
    """For a model that is clear: how far each resource is from the value at which it no longer is."""
    found = [
        *(_find(what_if, name, 1 / FARTHEST, 1.2) for name in ("network", "nvlink", "pcie")),
        *(_find(what_if, name, FARTHEST, 1.2) for name in ("peak", "mem-bandwidth")),
        _find(what_if, "batch", 0.0, 2.0, first=True),
        _find(what_if, "gpus", MOST_GPUS, 1.3, first=True),
    ]
    return [one for one in found if one is not None]


def border_changes(what_if: WhatIf, found: Iterable[Searched]) -> Iterator[tuple[Change, Outcome]]:
    """The changes to the values found: to the clear one, else to the even one, else to the farthest that fits."""
    for one in found:
        values = [border[1] for border in (one.clear, one.even) if border is not None]
        fitting = [rung for rung in one.tried if one.axis.outcome(rung).fits]
        whole = one.resource.whole
        values += fitting[-1:] if whole else _multiples(one)
        for rung in dict.fromkeys(values):
            yield _change(what_if, one, rung), one.axis.outcome(rung)
        too_large = one.clear is not None and not one.axis.outcome(one.clear[1]).fits
        if one.resource.name == "batch" and too_large and not what_if.base.options.recompute:
            yield from _with_recomputation(what_if, one)


def _multiples(found: Searched) -> list[int]:
    """A rate that is four times the base's, for pairs; nothing where the rate alone is enough, or without effect."""
    if found.clear is not None or len(found.tried) < 2:
        return []
    ladder = found.axis.ladder
    return [ladder.below(4 * ladder.value(found.tried[0]))]


def _with_recomputation(what_if: WhatIf, found: Searched) -> Iterator[tuple[Change, Outcome]]:
    """A batch that fits only when activations are recomputed: recomputation is no aim of its own."""
    axis = Axis(what_if, found.resource, _recompute)
    tried = axis.walk(found.tried[0], found.tried[-1], 2.0, until=lambda outcome: outcome.verdict is Verdict.CLEAR)
    border = axis.border(CLEAR, tried)
    if border is not None:
        outcome = axis.outcome(border[1])
        made = _change(what_if, found, border[1])
        yield replace(
            made, kind="batch + recompute", what=f"{made.what}, recomputing activations", apply=_recomputing(made),
            why=f"{made.why}; recomputation makes room for it",
        ), outcome  # fmt: skip


def _recompute(options: AnalysisOptions) -> AnalysisOptions:
    return replace(options, recompute=True)


def _recomputing(change: Change) -> Apply:
    return lambda options: _recompute(change.apply(options))


def _calibrated(what_if: WhatIf) -> bool:
    return what_if.base.choice.profile is not Profile.PAPER


_EFFORTS = {
    "batch": Effort.BATCH, "accumulate": Effort.BATCH, "gpus": Effort.PLACEMENT, "servers": Effort.PLACEMENT,
    "ps": Effort.PLACEMENT,
}  # fmt: skip

_WHYS = {
    "batch": "more computation for the same gradients",
    "accumulate": "gradients travel once for several micro-batches",
    "ps": "the same weights over more hosts",
}


def _change(what_if: WhatIf, found: Searched, rung: int) -> Change:
    base, resource = what_if.base, found.resource
    value = found.axis.ladder.value(rung)
    now = resource.of(base.options, base.choice, base.batch)
    from_text = "none" if now is None else resource.show(now)
    larger = now is None or value > now
    why = _WHYS.get(resource.name)
    if why is None:
        why = "fewer peers to exchange with" if not larger else "the link that is waited for is faster"
        if resource.name == "gpus" and larger:
            why = "another way of exchanging gradients, or fuller servers"
    return Change(
        f"{'fewer' if not larger else 'more'}-gpus" if resource.name == "gpus" else resource.name,
        _EFFORTS.get(resource.name, Effort.HARDWARE),
        f"{resource.title} {from_text} -> {resource.show(value)}",
        why,
        lambda options: resource.put(options, value),
        abs(log(value / now)) if now else 0.0,
    )


def _find(what_if: WhatIf, name: str, factor: float, ratio: float, *, first: bool = False) -> Searched | None:
    """Walk ``name`` to ``factor`` times its base value; None where it is no part of the placement.

    ``first``: values are dear, so the walk ends where both goals have turned.
    """
    base, resource = what_if.base, RESOURCES.find(name)
    now = resource.of(base.options, base.choice, base.batch)
    start_value = now
    if now is None and name == "nvlink":  # a server without: from what its PCIe gives
        start_value = base.choice.placement.cluster.server.pcie.bytes_per_s
    if start_value is None or not _takes_part(name, base):
        return None
    axis = Axis(what_if, resource)
    ladder, up = axis.ladder, factor > 1
    start = ladder.below(start_value) if up else ladder.above(start_value)
    end = _end(resource, start_value, factor, base)
    if start == end or (end < start) == up:
        return None
    clear_now = base.verdict is Verdict.CLEAR
    even_now = EVEN.met(base)

    def turned(outcome: Outcome) -> bool:
        return CLEAR.met(outcome) != clear_now and EVEN.met(outcome) != even_now

    def turned_to_clear(outcome: Outcome) -> bool:
        return CLEAR.met(outcome) and not clear_now

    unlimited = [ladder.below(UNLIMITED)] if up and not resource.whole else []
    ends = [start, *(unlimited or [end])]
    if not resource.whole and _without_effect(axis, ends):
        return Searched(resource, axis, (start,), None, None, _info(what_if, axis, ends, now, None, None))
    tried = axis.walk(start, end, ratio, until=(turned if clear_now else turned_to_clear) if first else None)
    tried += unlimited
    if len(tried) < 2:
        return Searched(resource, axis, tuple(tried), None, None, None) if axis.refusal else None
    clear = axis.border(CLEAR, tried)
    even = axis.border(EVEN, tried)
    if name == "gpus" and up and not clear_now and clear is None and even is None:
        return Searched(resource, axis, tuple(tried), None, None, None)
    return Searched(resource, axis, tuple(tried), clear, even, _info(what_if, axis, tried, now, clear, even))


def _takes_part(name: str, base: Outcome) -> bool:
    place = base.choice.placement
    if name == "network":
        return place.servers > 1 or bool(place.ps)
    if name in ("nvlink", "pcie", "peak", "mem-bandwidth", "batch"):
        return base.step.comm_s > 0
    return True


def _end(resource: Resource, value: float, factor: float, base: Outcome) -> int:
    """The last rung of a walk."""
    axis_value = value * factor
    if resource.name == "gpus":
        most = base.choice.placement.cluster.max_gpus or MOST_GPUS
        return max(1, min(most, int(axis_value)))
    if resource.whole:
        return max(1, int(axis_value))
    return Ladder(resource).below(axis_value)


def _without_effect(axis: Axis, tried: Sequence[int]) -> bool:
    shares = [axis.outcome(rung).step.comm_share for rung in tried]
    return max(shares) - min(shares) < 1e-6


def _info(
    what_if: WhatIf,
    axis: Axis,
    tried: Sequence[int],
    now: float | None,
    clear: tuple[int, int] | None,
    even: tuple[int, int] | None,
) -> BreakEvenInfo:
    resource = axis.resource
    turns = max(axis.turns(CLEAR), axis.turns(EVEN))
    end = _side(what_if, axis, tried[-1])
    return BreakEvenInfo(
        resource=resource.name,
        title=resource.title,
        now=now,
        now_text="none" if now is None else resource.show(now),
        direction="up" if tried[-1] > tried[0] else "down",
        clear=None if clear is None else _border(what_if, axis, CLEAR, clear),
        even=None if even is None else _border(what_if, axis, EVEN, even),
        end=end,
        turns=turns,
        note=_note(axis, tried, clear, what_if.base, turns),
    )


def _note(axis: Axis, tried: Sequence[int], clear: tuple[int, int] | None, base: Outcome, turns: int) -> str | None:
    """What a reader of the two values would otherwise miss."""
    notes = []
    if not axis.resource.whole and _without_effect(axis, (tried[0], tried[-1])):
        notes.append(no_difference(axis.resource.name, base))
    elif clear is None and base.verdict is not Verdict.CLEAR and not axis.resource.whole:
        notes.append("no rate is enough: other links, latency and losses stay")
    if turns > 1:
        again = None if clear is None else _turned_back(axis, tried, clear[1])
        where = "" if again is None else f", back at {axis.resource.show(axis.ladder.value(again))}"
        notes.append(f"the verdict turns {turns} times over the values tried{where}; the nearest border is given")
    return "; ".join(notes) or None


def _turned_back(axis: Axis, tried: Sequence[int], far: int) -> int | None:
    """The first rung tried beyond a border whose far side is ``far`` that is not as the far side is."""
    beyond = [rung for rung in tried if abs(rung - tried[0]) > abs(far - tried[0])]
    return next((rung for rung in beyond if CLEAR.met(axis.outcome(rung)) != CLEAR.met(axis.outcome(far))), None)


def _border(what_if: WhatIf, axis: Axis, goal: Goal, rungs: tuple[int, int]) -> BorderInfo:
    """Both sides by the whole analysis."""
    first, second = (_side(what_if, axis, rung) for rung in rungs)
    return BorderInfo(first, second) if goal.met(axis.outcome(rungs[0])) else BorderInfo(second, first)


def _side(what_if: WhatIf, axis: Axis, rung: int) -> SideInfo:
    value = axis.ladder.value(rung)
    step = what_if.analysis(axis.options(rung)).step
    unlimited = not axis.resource.whole and value >= UNLIMITED * 0.99
    return SideInfo(
        value=value,
        text="without limit" if unlimited else axis.resource.show(value),
        comm_share=step.comm_share,
        comm_share_low=step.comm_share_low,
        comm_share_high=step.comm_share_high,
        verdict=step.verdict,
    )
