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


def curve_through(points: Iterable[tuple[float, float]], bins_per_decade: int = 4) -> RateCurve:
    """A curve through (work, seconds): medians of rates in equal steps of work's logarithm, then made to rise.

    Where a larger step is faster, it and its neighbour take their geometric mean.
    Source: pool adjacent violators (Ayer et al. 1955), on the logarithm of seconds.

    >>> round(curve_through([(1e3, 1e-6), (1e5, 1e-5), (1e5, 3e-5)]).at(1e5), 9)
    2e-05
    >>> [round(one, 9) for one in curve_through([(1e3, 4e-6), (1e4, 1e-6), (1e5, 9e-6)]).seconds]
    [2e-06, 2e-06, 9e-06]
    """
    binned: dict[int, list[tuple[float, float]]] = {}
    for work, seconds in points:
        binned.setdefault(round(bins_per_decade * log(work, 10)), []).append((work, seconds))
    xs: list[float] = []
    pools: list[tuple[float, int]] = []  # mean of log seconds, how many steps share it
    for _, members in sorted(binned.items()):
        work = exp(sum(log(one) for one, _ in members) / len(members))
        mean, count = log(work * median(seconds / one for one, seconds in members)), 1
        while pools and pools[-1][0] > mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        xs.append(work)
        pools.append((mean, count))
    return RateCurve(tuple(xs), tuple(exp(mean) for mean, count in pools for _ in range(count)))
