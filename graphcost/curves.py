"""Curves measured on a machine: seconds over work, to be read off between their points."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log
from statistics import median


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Points of work (FLOPs or bytes, rising) and seconds (never falling).

    Below the first point a kernel takes as long as there, above the last it keeps that rate.

    >>> RateCurve((1e3, 1e5), (1e-6, 1e-4)).at(1e7)
    0.01
    """

    work: tuple[float, ...]
    seconds: tuple[float, ...]

    def at(self, work: float) -> float:
        """Seconds of one kernel with ``work``: a straight line between points, on logarithmic axes."""
        points, times = self.work, self.seconds
        if work <= points[0]:
            return times[0]
        if work >= points[-1]:
            return times[-1] * work / points[-1]
        right = bisect_left(points, work)
        left = right - 1
        part = log(work / points[left]) / log(points[right] / points[left])
        return exp(log(times[left]) + part * log(times[right] / times[left]))


def curve_through(points: Iterable[tuple[float, float]], bins_per_decade: int = 2) -> RateCurve:
    """A curve through (work, seconds): medians of rates in equal steps of work's logarithm.

    >>> round(curve_through([(1e3, 1e-6), (1e5, 1e-5), (1e5, 3e-5)]).at(1e5), 9)
    2e-05
    """
    binned: dict[int, list[tuple[float, float]]] = {}
    for work, seconds in points:
        binned.setdefault(round(bins_per_decade * log(work, 10)), []).append((work, seconds))
    xs, ys = [], []
    slowest = 0.0
    for _, members in sorted(binned.items()):
        work = exp(sum(log(one) for one, _ in members) / len(members))
        slowest = max(slowest, work * median(seconds / one for one, seconds in members))
        xs.append(work)
        ys.append(slowest)
    return RateCurve(tuple(xs), tuple(ys))
