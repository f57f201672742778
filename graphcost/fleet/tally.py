"""Sums over blocks of jobs: means, tails and quantiles that do not need the table in memory.

Means and tail counts are exact sums. Quantiles come from histograms of a fixed width, so
that they are right to half of it whatever the size of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphcost.fleet.jobs import Column

SHARE_BINS = 10_000
"""Bins of a share: quantiles are within 0.00005."""
LEVELS = tuple(sorted({*(step / 40 for step in range(41)), 0.99}))
"""Levels of the quantiles that are reported: every 2.5 %, enough to draw a distribution, and 99 %."""

TAILS = (0.5, 0.8)
"""Shares over which jobs are counted."""

RATIO_DOUBLINGS, BINS_A_DOUBLING = 32, 256
"""Histogram of a speed-up: 2^-32 to 2^32, in steps of 0.27 %."""


@dataclass(slots=True)
class Histogram:
    """Weighted counts of values in [0, 1] by nearest bin."""

    counts: Column = field(default_factory=lambda: np.zeros(SHARE_BINS + 1))

    def add(self, bins: NDArray[np.intp], weight: Column | None) -> None:
        """Values by their bins, each with its weight, or 1."""
        self.counts += np.bincount(bins, weight, minlength=len(self.counts))

    def quantiles(self) -> tuple[float, ...]:
        """At :data:`LEVELS`: the least value with at least that much of the weight at or below it."""
        return tuple((_at_levels(self.counts) / SHARE_BINS).tolist())

    def merged(self, other: Histogram) -> Histogram:
        """Both together."""
        return Histogram(self.counts + other.counts)


def share_bins(shares: Column) -> NDArray[np.intp]:
    """The bin of every share."""
    return np.rint(shares * SHARE_BINS).astype(np.intp)


def _at_levels(counts: Column) -> NDArray[np.intp]:
    """The bins at :data:`LEVELS`; zeros where nothing was counted."""
    total = np.cumsum(counts)
    if total[-1] <= 0:
        return np.zeros(len(LEVELS), dtype=np.intp)
    # Rounding must not push a level past weight that is there.
    found = np.searchsorted(total, np.array(LEVELS) * total[-1] * (1 - 1e-12))
    bins: NDArray[np.intp] = np.maximum(found, np.argmax(counts > 0))
    return bins


@dataclass(slots=True)
class RatioHistogram:
    """Counts of speed-ups on a logarithmic scale."""

    counts: Column = field(default_factory=lambda: np.zeros(2 * RATIO_DOUBLINGS * BINS_A_DOUBLING + 1))

    def add(self, ratios: Column) -> None:
        """Positive values."""
        bins = np.rint((np.log2(ratios) + RATIO_DOUBLINGS) * BINS_A_DOUBLING)
        kept = np.clip(bins, 0, len(self.counts) - 1).astype(np.intp)
        self.counts += np.bincount(kept, minlength=len(self.counts))

    def quantiles(self) -> tuple[float, ...]:
        """At :data:`LEVELS`, within 0.14 %; zeros where nothing was added."""
        if not self.counts.any():
            return (0.0,) * len(LEVELS)
        return tuple((2.0 ** (_at_levels(self.counts) / BINS_A_DOUBLING - RATIO_DOUBLINGS)).tolist())


@dataclass(slots=True)
class PartTally:
    """One part of the step over some jobs, under one weighting: mean share, tails, distribution."""

    weight: float = 0.0
    total: float = 0.0
    over: dict[float, float] = field(default_factory=lambda: dict.fromkeys(TAILS, 0.0))
    histogram: Histogram = field(default_factory=Histogram)

    def add(self, shares: Column, bins: NDArray[np.intp], weight: Column | None) -> None:
        """A block; ``weight`` None counts every job once."""
        self.weight += float(len(shares) if weight is None else weight.sum())
        self.total += float(shares.sum() if weight is None else shares @ weight)
        for limit in self.over:
            high = shares > limit
            self.over[limit] += float(np.count_nonzero(high) if weight is None else high @ weight)
        self.histogram.add(bins, weight)

    def merged(self, other: PartTally) -> PartTally:
        """Both together."""
        over = {limit: count + other.over[limit] for limit, count in self.over.items()}
        return PartTally(
            self.weight + other.weight, self.total + other.total, over, self.histogram.merged(other.histogram)
        )

    @property
    def mean(self) -> float:
        """Mean share."""
        return self.total / self.weight if self.weight else 0.0

    def over_share(self, limit: float) -> float:
        """Weight of the jobs whose share is over ``limit``, over all weight."""
        return self.over[limit] / self.weight if self.weight else 0.0

    def quantiles(self) -> tuple[float, ...]:
        """At :data:`LEVELS`."""
        return self.histogram.quantiles()


@dataclass(slots=True)
class WeightedMean:
    """A mean by weight."""

    weight: float = 0.0
    total: float = 0.0

    def add(self, values: Column, weight: Column | None = None) -> None:
        """A block."""
        self.weight += float(len(values) if weight is None else weight.sum())
        self.total += float(values.sum() if weight is None else values @ weight)

    @property
    def mean(self) -> float:
        """0 where nothing was added."""
        return self.total / self.weight if self.weight else 0.0

    def merged(self, other: WeightedMean) -> WeightedMean:
        """Both together."""
        return WeightedMean(self.weight + other.weight, self.total + other.total)
