"""Two sides compared: metrics that differ, settings that differ, operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphcost.diffing.metrics import METRICS, Snapshot, changed_settings
from graphcost.diffing.operators import OperatorChanges, match_operators
from graphcost.diffing.sides import Side


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric on both sides. ``change`` is (head - base) / base; None where base is 0."""

    metric: str
    base: float
    head: float
    change: float | None


@dataclass(frozen=True, slots=True)
class ModelDiff:
    """What became of one model: ``added``, ``removed``, ``changed`` or ``unchanged``.

    ``deltas`` holds the metrics that differ, ``same`` those that do not, ``counts`` operators by
    type (base, head) where their number differs. ``operators`` is None where a side was written
    without its operators.
    """

    name: str
    what: str
    deltas: tuple[Delta, ...]
    same: tuple[Delta, ...]
    settings: tuple[str, ...]
    counts: Mapping[str, tuple[int, int]]
    operators: OperatorChanges | None


def deltas_between(base: Snapshot, head: Snapshot) -> tuple[tuple[Delta, ...], tuple[Delta, ...]]:
    """(differing, equal) metrics that both sides hold, in the order of ``METRICS``."""
    differing: list[Delta] = []
    equal: list[Delta] = []
    for key, metric in METRICS.items():
        if key not in base.metrics or key not in head.metrics:
            continue
        before, after = base.metrics[key], head.metrics[key]
        delta = Delta(key, before, after, (after - before) / before if before else None)
        (differing if metric.differs(before, after) else equal).append(delta)
    return tuple(differing), tuple(equal)


def diff_models(base: Sequence[Side], head: Sequence[Side]) -> tuple[ModelDiff, ...]:
    """Every model of either side, in the order of ``head``; one on each side is one model, whatever its name."""
    if len(base) == 1 and len(head) == 1:
        return (diff_sides(base[0], head[0]),)
    before = {side.name: side for side in base}
    after = {side.name: side for side in head}
    found = [
        diff_sides(before[side.name], side) if side.name in before else lone_side(side, "added") for side in head
    ]  # fmt: skip
    return (*found, *(lone_side(side, "removed") for side in base if side.name not in after))


def diff_sides(base: Side, head: Side) -> ModelDiff:
    """One model before and after."""
    differing, equal = deltas_between(base.snapshot, head.snapshot)
    settings = tuple(changed_settings(base.snapshot, head.snapshot))
    operators = None if base.ops is None or head.ops is None else match_operators(base.ops, head.ops)
    counts = _counts(base.snapshot.operators, head.snapshot.operators)
    rewired = operators is not None and bool(operators.changes or operators.rewired)
    what = "changed" if differing or settings or counts or rewired else "unchanged"
    return ModelDiff(head.name, what, differing, equal, settings, counts, operators)


def _counts(base: Mapping[str, int], head: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Types whose number differs; nothing where a side was written without its operators."""
    if not base or not head:
        return {}
    pairs = {name: (base.get(name, 0), head.get(name, 0)) for name in sorted({*base, *head})}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def lone_side(side: Side, what: str) -> ModelDiff:
    """A model that only one side has: ``added`` or ``removed``."""
    equal = tuple(Delta(key, value, value, 0.0) for key, value in side.snapshot.metrics.items())
    return ModelDiff(side.name, what, (), equal, (), {}, None)
