"""Where a divided axis goes through an operator: reshapes, permutations, broadcasts.

A value of shape ``[d0, d1, ...]`` is divided along one axis; every GPU of the group holds an
equal run of it. Rows of a weight may lie in any order, so an axis of joined parts (queries,
keys and values side by side) counts as divided when each part is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from graphcost.ir import TensorSpec

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """``axis`` is divided; ``outer``: elements of sizes merged into it before the divided one.

    ``sequence``: whole rows, divided where tensor parallelism would hold them on every GPU.
    """

    axis: int
    outer: int = 1
    sequence: bool = False


class HeadsError(Exception):
    """An axis falls apart into heads whose number the group does not divide."""

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self.heads = heads


def local(spec: TensorSpec, split: Split | None, parts: int) -> TensorSpec:
    """One GPU's share, rounded up.

    >>> local(TensorSpec((2, 6)), Split(1), 3).shape
    (2, 2)
    """
    if split is None:
        return spec
    shape = list(spec.shape)
    shape[split.axis] = -(-shape[split.axis] // parts)
    return TensorSpec(tuple(shape), spec.dtype)


def reshaped(before: Shape, after: Shape, split: Split, parts: int) -> Split | None:
    """The divided axis behind a reshape; None where it is divided no more.

    An axis that falls apart is divided along the first of its factors that ``parts`` divides, the
    last (the size of a head) only where there is no other. Raises ``HeadsError`` where factors are
    heads and ``parts`` divides none.

    >>> reshaped((2, 8, 64), (2, 8, 4, 16), Split(2), 2)
    Split(axis=2, outer=1, sequence=False)
    >>> reshaped((2, 4, 8, 16), (8, 8, 16), Split(1), 2)
    Split(axis=0, outer=2, sequence=False)
    """
    start, end = prod(before[: split.axis]), prod(before[: split.axis + 1])
    done = 1
    for axis, size in enumerate(after):
        if done == start and done * size == end:
            return Split(axis, split.outer, split.sequence)
        if done <= start and done * size >= end and size > 1:  # merged with its neighbours
            return Split(axis, split.outer * (start // done), split.sequence)
        if start <= done and done * size <= end and size > 1:  # one factor of what it was
            return _factor(after, axis, end // done, split, parts)
        done *= size
    return None


def _factor(after: Shape, first: int, numel: int, split: Split, parts: int) -> Split | None:
    axes, seen = [], 1
    for axis in range(first, len(after)):
        if seen == numel:
            break
        axes.append(axis)
        seen *= after[axis]
    skipped = 1
    while axes and skipped < split.outer:  # sizes that were merged in before the divided one
        skipped *= after[axes.pop(0)]
    if seen != numel or not axes or skipped != split.outer:
        return None
    whole = [axis for axis in axes if after[axis] > 1]
    candidates = whole[:-1] if len(whole) > 1 else whole
    for axis in candidates:
        if after[axis] % parts == 0:
            return Split(axis, 1, split.sequence)
    if len(whole) > 1 and not split.sequence:
        raise HeadsError(after[whole[-2]])
    return None


def aligned(split: Split, rank: int, out_rank: int) -> Split:
    """The same axis of a broadcast result, counted from the last."""
    return Split(out_rank - rank + split.axis, split.outer, split.sequence)
