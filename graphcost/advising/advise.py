"""``graphcost advise`` as a function: try, judge, order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from graphcost._version import __version__
from graphcost.advising.break_even import Searched, border_changes, margins, searched
from graphcost.advising.changes import KINDS, Change, combined, flags_of
from graphcost.advising.result import AdviceInfo, Advising, OutcomeInfo, RefusedInfo
from graphcost.errors import GraphcostError
from graphcost.fitting import CONTEXT_BYTES
from graphcost.placing import AnalysisOptions
from graphcost.units import format_bytes, format_rate, format_seconds
from graphcost.verdict import Verdict
from graphcost.what_if import Outcome, WhatIf

MOST_PAIRS = 250
"""Pairs tried where no single change helps."""

PAIRS_SHOWN = 3
REJECTED_SHOWN = 6

WORTH_TELLING = 0.01
"""A change that is not enough is told where it lowers the share by so much."""

_SAME = 1e-9
"""Rates that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A change and its outcome, against the base."""

    change: Change
    outcome: Outcome
    base: Outcome

    @property
    def speedup(self) -> float:
        """Samples per second over the base's."""
        return self.outcome.work_per_s / self.base.work_per_s if self.base.work_per_s else 1.0

    @property
    def lowers(self) -> bool:
        """Whether the share's upper end falls."""
        return self.outcome.step.comm_share_high < self.base.step.comm_share_high * (1 - _SAME)

    @property
    def worth_telling(self) -> bool:
        """Whether it is enough, or lowers the share by more than next to nothing."""
        lower = self.base.step.comm_share - self.outcome.step.comm_share >= WORTH_TELLING
        return self.lowers and (lower or self.clears)

    @property
    def clears(self) -> bool:
        """Whether the model is then under its limit, interval included."""
        return self.outcome.verdict is Verdict.CLEAR

    @property
    def objections(self) -> tuple[str, ...]:
        """Why it is not advised."""
        found = []
        if self.outcome.verdict is Verdict.TOO_CLOSE:
            found.append("too close to the limit: its interval straddles it")
        elif not self.clears:
            found.append("still over the limit")
        if not self.runs:
            found.append(f"does not fit: {_memory_text(self.outcome)}")
        if self.speedup < 1 - _SAME:
            found.append(
                f"slower: {format_rate(self.outcome.work_per_s)} samples/s instead of "
                f"{format_rate(self.base.work_per_s)}"
            )
        return tuple(found)

    @property
    def runs(self) -> bool:
        """Whether it fits into memory, or needs no more than a base that does not fit either, which is said."""
        no_worse = not self.base.fits and self.outcome.memory.peak_bytes <= self.base.memory.peak_bytes
        return self.outcome.fits or no_worse

    @property
    def order(self) -> tuple[float, ...]:
        """Least effort, then the smallest change, then the lowest share."""
        return (self.change.effort, self.change.size, self.outcome.step.comm_share_high)


def advise_model(source: Any, options: AnalysisOptions, example_inputs: Any = None) -> Advising:
    """The smallest changes that take ``source`` under ``options.max_comm_share``, and its break-even values.

    A model that is clear already gets its margins instead. Raises what ``analyze`` raises;
    a change that cannot be tried is refused by name.
    """
    what_if = WhatIf(source, options, example_inputs)
    base = what_if.base
    refused: list[RefusedInfo] = []
    tried: list[Tried] = []
    if base.verdict is Verdict.CLEAR:
        found = margins(what_if)
    else:
        found = searched(what_if)
        changes = [change for kind in KINDS for change in kind(base)]
        tried = _try(what_if, changes, refused) + [
            Tried(change, outcome, base) for change, outcome in border_changes(what_if, found)
        ]
        if not any(not one.objections for one in tried):
            tried += _pairs(what_if, tried)
    return _result(what_if, found, tried, refused)


def _try(what_if: WhatIf, changes: Iterable[Change], refused: list[RefusedInfo]) -> list[Tried]:
    """Outcomes of changes; those that cannot be are added to ``refused``."""
    found = []
    for change in changes:
        try:
            found.append(Tried(change, what_if.at(change.apply(what_if.base.options)), what_if.base))
        except GraphcostError as error:
            refused.append(RefusedInfo(change.what, str(error)))
    return found


def _pairs(what_if: WhatIf, tried: Iterable[Tried]) -> list[Tried]:
    """The best pairs of changes that lower the share, fit, and cost no throughput by themselves."""
    moves = sorted(
        (one for one in tried if one.lowers and one.runs and one.speedup >= 1 - _SAME),
        key=lambda one: one.outcome.step.comm_share_high,
    )
    pairs = [
        combined(first.change, second.change)
        for first, second in combinations(moves, 2)
        if first.change.kind != second.change.kind
    ]
    made = _try(what_if, pairs[:MOST_PAIRS], [])
    good = sorted((one for one in made if not one.objections), key=lambda one: one.order)
    return good[:PAIRS_SHOWN] or sorted(made, key=lambda one: one.outcome.step.comm_share_high)[:1]


def _result(what_if: WhatIf, found: Iterable[Searched], tried: list[Tried], refused: list[RefusedInfo]) -> Advising:
    base, options = what_if.base, what_if.base.options
    analysis = what_if.analysis(options, "advise")
    advice = _smallest_of_each_kind(one for one in tried if not one.objections)
    advised = {one.change.kind for one in advice}
    others = _smallest_of_each_kind(
        one for one in tried if one.objections and one.worth_telling and one.change.kind not in advised
    )
    possible = [one for one in tried if one.lowers and one.runs and one.speedup >= 1 - _SAME]
    nearest = min(possible, key=lambda one: one.outcome.step.comm_share_high, default=None)
    refused += [RefusedInfo(one.resource.title, one.refusal) for one in found if one.refusal]
    return Advising(
        graphcost_version=__version__,
        command="advise",
        model=analysis.model,
        placement=analysis.placement,
        precision=analysis.training.precision,
        master_weights=analysis.training.master_weights,
        max_comm_share=options.max_comm_share,
        verdict=analysis.step.verdict,
        flagged=analysis.step.flagged,
        reason=analysis.step.reason,
        base=_outcome_info(base),
        advice=tuple(_advice_info(one) for one in advice),
        rejected=tuple(_advice_info(one) for one in others[:REJECTED_SHOWN]),
        nearest_miss=None if advice or nearest is None else _advice_info(nearest),
        break_evens=tuple(one.info for one in found if one.info is not None),
        refused=tuple(dict.fromkeys(refused)),
        notes=_notes(base),
        analysis=analysis,
    )


def _smallest_of_each_kind(tried: Iterable[Tried]) -> list[Tried]:
    """One change of every kind: the one with least to object to, then the smallest; in order of effort."""
    best: dict[str, Tried] = {}
    for one in sorted(tried, key=lambda one: (not one.clears, len(one.objections), one.order)):
        best.setdefault(one.change.kind, one)
    return sorted(best.values(), key=lambda one: one.order)


def _notes(base: Outcome) -> tuple[str, ...]:
    """Why there is nothing to advise, where that is so."""
    if base.choice.placement.gpus == 1 and not base.step.comm_s:
        return ("one GPU: nothing is communicated",)
    if not base.choice.recipe.trains:
        return ("forward only: no gradients are communicated",)
    return ()


def _advice_info(one: Tried) -> AdviceInfo:
    outcome, base = one.outcome, one.base
    caution = one.change.caution
    if outcome.global_batch != base.global_batch:
        changed = (
            f"the global batch goes from {base.global_batch:,} to {outcome.global_batch:,} samples, which changes "
            "the optimisation, not only its speed"
        )
        caution = f"{caution}; {changed}" if caution else changed
    if not outcome.fits and not base.fits:
        caution = f"{caution + '; ' if caution else ''}it still does not fit: {_memory_text(outcome)}"
    rest_s = base.step.step_s - base.step.exposed_comm_s, outcome.step.step_s - outcome.step.exposed_comm_s
    why = (
        f"{one.change.why}: the step waits {format_seconds(outcome.step.exposed_comm_s)} for communication instead "
        f"of {format_seconds(base.step.exposed_comm_s)}, beside {format_seconds(rest_s[1])} of everything else"
        + ("" if abs(rest_s[1] - rest_s[0]) <= _SAME * rest_s[0] else f" instead of {format_seconds(rest_s[0])}")
    )
    return AdviceInfo(
        kinds=tuple(one.change.kind.split(" + ")),
        effort=one.change.effort.label,
        size=one.change.size,
        what=one.change.what,
        options=flags_of(base.options, outcome.options),
        why=why,
        caution=caution,
        recommended=not one.objections,
        objections=one.objections,
        throughput_speedup=one.speedup,
        outcome=_outcome_info(outcome),
    )


def _memory_text(outcome: Outcome) -> str:
    device, peak_bytes = outcome.choice.placement.cluster.device, outcome.memory.peak_bytes
    return (
        f"the step needs {format_bytes(peak_bytes)} beside {format_bytes(CONTEXT_BYTES)} of context, "
        f"{device.id} has {format_bytes(device.mem_bytes)}"
    )


def _outcome_info(outcome: Outcome) -> OutcomeInfo:
    step, place = outcome.step, outcome.choice.placement
    return OutcomeInfo(
        step_s=step.step_s,
        step_low_s=step.step_low_s,
        step_high_s=step.step_high_s,
        exposed_comm_s=step.exposed_comm_s,
        comm_share=step.comm_share,
        comm_share_low=step.comm_share_low,
        comm_share_high=step.comm_share_high,
        verdict=str(outcome.verdict),
        bound=step.bound,
        samples_per_s=outcome.samples_per_s,
        gpus=place.gpus,
        servers=place.servers,
        batch_per_gpu=outcome.batch,
        global_batch=outcome.global_batch,
        peak_bytes=outcome.memory.peak_bytes,
        fits=outcome.fits,
    )
