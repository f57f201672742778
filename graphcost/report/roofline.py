"""The operators of a step as points of a roofline plot, from what their kernels move and compute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphcost.predict import TimedOp


@dataclass(frozen=True, slots=True)
class Point:
    """Operators of one kind with equal work: ``count`` of them; ``time_s`` of all, ``name`` of the first."""

    flop_per_byte: float
    flops_per_s: float
    time_s: float
    bound: str
    name: str
    op_type: str
    phase: str
    count: int


def points_of(ops: Iterable[TimedOp]) -> list[Point]:
    """Dearest first. What computes nothing, moves nothing or takes no time has no place on logarithmic axes."""
    alike: dict[tuple[str, str, str, int, int, float], list[TimedOp]] = {}
    for one in ops:
        cost, time_s = one.op.cost, one.time.time_s
        if cost is not None and cost.flops and cost.bytes and time_s > 0:
            key = (one.op.op_type, str(one.op.phase), str(one.time.bound), cost.flops, cost.bytes, time_s)
            alike.setdefault(key, []).append(one)
    points = [
        Point(flops / moved, flops / time_s, time_s * len(found), bound, found[0].op.name, kind, phase, len(found))
        for (kind, phase, bound, flops, moved, time_s), found in alike.items()
    ]
    return sorted(points, key=lambda point: (-point.time_s, point.name))
