"""Errors per table: medians per model first, so that a table's thousands of rows of one network count once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.network_accuracy.predict import Predicted
from benchmarks.network_accuracy.rows import Row

LIMIT = 0.5
BORDER = (0.4, 0.6)
DIFFERENT = 1.10
"""Pairs of architectures whose steps differ by less are ties."""


@dataclass(frozen=True)
class Scored:
    """A row with its prediction."""

    row: Row
    predicted: Predicted

    @property
    def step_s(self) -> float:
        return self.row.single_s + self.predicted.wait_s

    @property
    def efficiency_points(self) -> float:
        return 100 * (self.row.single_s / self.step_s - self.row.efficiency)

    @property
    def share(self) -> float:
        return self.predicted.wait_s / self.step_s

    @property
    def share_points(self) -> float:
        return 100 * (self.share - self.row.share)


@dataclass(frozen=True)
class Verdict:
    """Of rows over the limit how many are found, and of those called so how many are."""

    hits: int
    missed: int
    false: int
    right: int
    rows: int
    clear_right: int
    clear_rows: int

    @property
    def recall(self) -> float | None:
        return self.hits / (self.hits + self.missed) if self.hits + self.missed else None

    @property
    def precision(self) -> float | None:
        return self.hits / (self.hits + self.false) if self.hits + self.false else None

    @property
    def outside(self) -> float | None:
        """Share of right verdicts where the measured share is no borderline case."""
        return self.clear_right / self.clear_rows if self.clear_rows else None


def verdict(rows: Iterable[Scored]) -> Verdict:
    pairs = [(one.row.share, one.share) for one in rows]
    over = [(is_ > LIMIT, said > LIMIT, not BORDER[0] <= is_ <= BORDER[1]) for is_, said in pairs]
    return Verdict(
        hits=sum(a and b for a, b, _ in over),
        missed=sum(a and not b for a, b, _ in over),
        false=sum(b and not a for a, b, _ in over),
        right=sum(a == b for a, b, _ in over),
        rows=len(over),
        clear_right=sum(a == b for a, b, clear in over if clear),
        clear_rows=sum(clear for *_, clear in over),
    )


def by_model(rows: Iterable[Scored]) -> dict[str, list[Scored]]:
    groups: dict[str, list[Scored]] = defaultdict(list)
    for one in rows:
        groups[one.row.model].append(one)
    return dict(groups)


def mean_of_models(rows: Sequence[Scored], figure: Callable[[list[Scored]], float]) -> float:
    return mean(figure(group) for group in by_model(rows).values())


def median_error(points: Iterable[float]) -> float:
    return median(abs(point) for point in points)


def percentile(points: Iterable[float], share: float) -> float:
    ordered = sorted(abs(point) for point in points)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def pooled(rows: Sequence[Scored], points: Callable[[Scored], float], share: float) -> float:
    """Weighted percentile: every (table, model) counts the same."""
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for one in rows:
        sizes[one.row.table, one.row.model] += 1
    weighed = sorted((abs(points(one)), 1 / sizes[one.row.table, one.row.model]) for one in rows)
    total, passed = sum(weight for _, weight in weighed), 0.0
    for value, weight in weighed:
        passed += weight
        if passed >= share * total:
            return value
    return weighed[-1][0]


@dataclass(frozen=True)
class Winner:
    """Two runs that differ in the architecture: which was faster, and which is said to be."""

    pair: tuple[str, ...]
    measured: float
    predicted: float

    @property
    def right(self) -> bool:
        return (self.measured > 1) == (self.predicted > 1)

    @property
    def differs(self) -> bool:
        return not 1 / DIFFERENT <= self.measured <= DIFFERENT


def winners(rows: Iterable[Scored]) -> list[Winner]:
    """AllReduce's step over that of parameter servers, for every pair of rows."""
    pairs: dict[tuple[str, ...], dict[bool, list[Scored]]] = defaultdict(lambda: {True: [], False: []})
    for one in rows:
        if one.row.pair:
            pairs[one.row.pair][one.row.run.arch == "ps"].append(one)
    return [
        Winner(key, ring.row.step_s / server.row.step_s, ring.step_s / server.step_s)
        for key, sides in pairs.items()
        for ring in sides[False]
        for server in sides[True]
    ]
