"""Seeds of training, validation and test traces: three ranges that never meet.

A policy is trained on the first, chosen on the second, and reported on the third. Windows of a recorded trace
are cut from its first three fifths, fourth fifth and last fifth in the same way.
"""

from __future__ import annotations

from enum import StrEnum

from graphcost.errors import UsageError

_EACH = 1_000_000


class Split(StrEnum):
    """What a trace may be used for."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


SEEDS = {split: range(index * _EACH, (index + 1) * _EACH) for index, split in enumerate(Split)}
FIFTHS = {Split.TRAIN: (0.0, 0.6), Split.VALIDATION: (0.6, 0.8), Split.TEST: (0.8, 1.0)}


def seeds_of(split: Split, count: int, start: int = 0) -> tuple[int, ...]:
    """``count`` seeds of a range, from its ``start``-th on; raises ``UsageError`` beyond its end.

    >>> seeds_of(Split.TEST, 2)
    (2000000, 2000001)
    """
    if count < 1 or start < 0 or start + count > _EACH:
        raise UsageError(f"{count} traces from {start} on: between 1 and {_EACH} {split} traces can be drawn")
    return tuple(SEEDS[split][start : start + count])


def split_of(seed: int) -> Split | None:
    """The range that a seed belongs to; None outside all of them."""
    return next((split for split, seeds in SEEDS.items() if seed in seeds), None)
