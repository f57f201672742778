"""Operators of two graphs, matched by structure: names that an exporter gave play no part.

An operator's id hashes its type, attributes and parameter shapes with those of its
neighbours (``graph.stable_ids``). Three passes, each over what the ones before left:

1. the same id and costs: unchanged;
2. the same id with other costs (another batch, a larger image): a change;
3. the same type and costs beside other neighbours: rewired, not a change of its own;
4. the same type, in execution order, the pairs that are most alike: a change.

What is left was removed or added. Time is linear but for the fourth pass, whose alignment is
quadratic in what changed of one type and gives way to plain order over ``_MOST_PAIRS``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import log

from graphcost.result import OpInfo

_MOST_PAIRS = 250_000

_COSTS = ("matmul_flops", "elementwise_flops", "read_bytes", "write_bytes", "params", "repeat")
"""What an operator costs before hardware: another network rate is no change of operators."""


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """One operator, or several alike (``count``): ``what`` is added, removed or changed.

    FLOPs, bytes (forward) and parameters of one of them; None on the side that has none.
    """

    what: str
    op_type: str
    name: str
    module: str
    count: int
    base_flops: int | None
    head_flops: int | None
    base_bytes: int | None
    head_bytes: int | None
    base_params: int | None
    head_params: int | None


@dataclass(frozen=True, slots=True)
class OperatorChanges:
    """All differences between two lists of operators; ``rewired`` have only other neighbours."""

    changes: tuple[OperatorChange, ...]
    unchanged: int
    rewired: int

    def count(self, what: str) -> int:
        """Operators ``added``, ``removed`` or ``changed``."""
        return sum(change.count for change in self.changes if change.what == what)


def match_operators(base: Sequence[OpInfo], head: Sequence[OpInfo]) -> OperatorChanges:
    """What of ``base`` is in ``head``, what changed, what came and went."""
    same_id, left, right = _paired(base, head, lambda op: (_kind_id(op), _costs(op)))
    also, left, right = _paired(left, right, _kind_id)
    moved, left, right = _paired(left, right, lambda op: (op.op_type, _costs(op)))
    alike, left, right = _aligned(left, right)
    found = [_change("changed", a, b) for a, b in also + alike]
    found += [_change("removed", op, None) for op in left] + [_change("added", None, op) for op in right]
    return OperatorChanges(_grouped(found), unchanged=len(same_id) + len(moved), rewired=len(moved))


def _kind_id(op: OpInfo) -> str:
    """The id (``Conv-3f9a1c02.2``) without the number that tells equal ones apart."""
    return op.id[: op.id.rfind("-") + 9]


def _costs(op: OpInfo) -> tuple[int, ...]:
    return tuple(getattr(op, name) for name in _COSTS)


Pairs = list[tuple[OpInfo, OpInfo]]


def _paired(
    base: Sequence[OpInfo], head: Sequence[OpInfo], key: Callable[[OpInfo], Hashable]
) -> tuple[Pairs, list[OpInfo], list[OpInfo]]:
    """Pairs of equal keys in execution order, and what is left on each side."""
    waiting: dict[Hashable, list[OpInfo]] = defaultdict(list)
    for op in reversed(base):
        waiting[key(op)].append(op)
    pairs: Pairs = []
    right = []
    for op in head:
        same = waiting.get(key(op))
        if same:
            pairs.append((same.pop(), op))
        else:
            right.append(op)
    taken = {id(a) for a, _ in pairs}
    return pairs, [op for op in base if id(op) not in taken], right


def _aligned(base: Sequence[OpInfo], head: Sequence[OpInfo]) -> tuple[Pairs, list[OpInfo], list[OpInfo]]:
    """Of each type as many pairs as the shorter side holds, in order, together the most alike."""
    sides: dict[str, tuple[list[OpInfo], list[OpInfo]]] = defaultdict(lambda: ([], []))
    for index, ops in enumerate((base, head)):
        for op in ops:
            sides[op.op_type][index].append(op)
    pairs: Pairs = []
    for left, right in sides.values():
        if len(left) <= len(right):
            pairs += _best_order(left, right)
        else:
            pairs += [(a, b) for b, a in _best_order(right, left)]
    taken = {id(op) for pair in pairs for op in pair}
    return pairs, [op for op in base if id(op) not in taken], [op for op in head if id(op) not in taken]


def _best_order(few: Sequence[OpInfo], many: Sequence[OpInfo]) -> Pairs:
    """Every one of ``few`` with one of ``many``, in order, at the least sum of distances."""
    if not few:
        return []
    if len(few) == len(many) or len(few) * len(many) > _MOST_PAIRS:
        return list(zip(few, many, strict=False))
    spare = len(many) - len(few)
    # best[s]: the least sum for the operators so far with s of `many` left out before them
    best = [0.0] * (spare + 1)
    steps: list[list[int]] = []
    for row, op in enumerate(few):
        here: list[float] = []
        chosen: list[int] = []
        least, at = float("inf"), 0
        for skipped in range(spare + 1):
            if best[skipped] < least:
                least, at = best[skipped], skipped
            here.append(least + _distance(op, many[row + skipped]))
            chosen.append(at)
        best = here
        steps.append(chosen)
    skipped = min(range(spare + 1), key=lambda index: best[index])
    pairs: Pairs = []
    for row in range(len(few) - 1, -1, -1):
        pairs.append((few[row], many[row + skipped]))
        skipped = steps[row][skipped]
    return pairs[::-1]


def _distance(a: OpInfo, b: OpInfo) -> float:
    """How unlike two operators of one type are: their costs as ratios, and whether they stand in one module."""
    ratios = sum(abs(log((x + 1) / (y + 1))) for x, y in zip(_costs(a), _costs(b), strict=True))
    return ratios + (a.module != b.module)


def _change(what: str, a: OpInfo | None, b: OpInfo | None) -> OperatorChange:
    op = b if b is not None else a
    assert op is not None
    before, after = _numbers(a), _numbers(b)
    return OperatorChange(
        what, op.op_type, op.name, op.module, 1,
        before[0], after[0], before[1], after[1], before[2], after[2],
    )  # fmt: skip


def _numbers(op: OpInfo | None) -> tuple[int, int, int] | tuple[None, None, None]:
    if op is None:
        return (None, None, None)
    return (op.matmul_flops + op.elementwise_flops, op.read_bytes + op.write_bytes, op.params)


def _grouped(changes: Sequence[OperatorChange]) -> tuple[OperatorChange, ...]:
    """Changes that read the same, once with their number; the largest first, then by name."""
    groups: dict[Hashable, list[OperatorChange]] = defaultdict(list)
    for one in changes:
        numbers = (one.base_flops, one.head_flops, one.base_bytes, one.head_bytes, one.base_params, one.head_params)
        groups[(one.what, one.op_type, *numbers)].append(one)
    merged = [
        OperatorChange(
            first.what, first.op_type, first.name, first.module, len(same), first.base_flops, first.head_flops,
            first.base_bytes, first.head_bytes, first.base_params, first.head_params,
        )
        for same in groups.values()
        for first in same[:1]
    ]  # fmt: skip
    return tuple(sorted(merged, key=lambda one: (-_weight(one), one.what, one.op_type, one.name)))


def _weight(change: OperatorChange) -> float:
    """Bytes that came or went, weights four each: what a step notices either way."""
    moved = abs((change.head_bytes or 0) - (change.base_bytes or 0))
    grown = abs((change.head_params or 0) - (change.base_params or 0))
    return change.count * (moved + 4 * grown)
