"""Least squares over the constants of the device model: rows of features, measured seconds, priors.

The model is ``t = sum max(matrix / e + vector / v, memory / m) + conversion c + launches t0``,
the longer of it and of the host's time. Everything is fitted as logarithms, errors too,
and every constant is drawn towards its start value, so that one which no row identifies
stays there.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._features import Features
from graphcost.engine.constants import family_of

DATA_SPREAD = 0.07
"""Spread of log errors that rows are weighed by against the priors."""

DEALS = 5
"""Splits into folds that figures are taken over: which families share a fold moves a median by a point."""

MOST = 1.5
"""No share is fitted above it: a card clocks over its boost, and caches help, but not without end."""

LOOSE = ("depthwise_3", "depthwise_5", "conv_grouped")
"""Rows whose start values are poorly known, and which several families have. Windows of 7 and more occur in two or
three families: without a held-out one, the others would bend them to their own errors."""


@dataclass(frozen=True)
class Sample:
    """One measured step: its kernels, seconds, and what a split goes by."""

    name: str
    group: str
    features: Features
    seconds: float


@dataclass
class Problem:
    """Samples stacked to arrays. ``host``: seconds per forward and backward kernel and parameter tensor."""

    samples: Sequence[Sample]
    start: Mapping[str, float]
    host: tuple[float, float, float]
    launch_s: float
    vector: float = 0.7
    prior_spread: float = 0.25
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        rows = sorted({row for sample in self.samples for row in sample.features.rows})
        self.names = [f"{row}.memory" for row in rows]
        self.names += [f"{row}.compute" for row in rows if family_of(_kind(row)) != "memory"]
        self.names += ["convert", "launch"]
        at = {name: index for index, name in enumerate(self.names)}
        sizes = [len(sample.features.rows) for sample in self.samples]
        self.owner = np.repeat(np.arange(len(self.samples)), sizes)
        self.terms = np.concatenate([sample.features.terms for sample in self.samples])
        flat = [row for sample in self.samples for row in sample.features.rows]
        self.memory_at = np.array([at[f"{row}.memory"] for row in flat])
        self.compute_at = np.array([at.get(f"{row}.compute", -1) for row in flat])
        self.seconds = np.array([sample.seconds for sample in self.samples])
        self.launches = np.array([sample.features.launches for sample in self.samples])
        self.theta0 = np.log([self.start[name] for name in self.names])
        loose = np.array([any(_kind(name).startswith(one) for one in LOOSE) for name in self.names])
        self.spread = np.where(loose, 2 * self.prior_spread, self.prior_spread)

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of every sample, and their derivatives by every log constant."""
        n, count = len(self.samples), self.terms[:, 5]
        value = np.exp(theta)
        compute = np.where(self.compute_at >= 0, value[self.compute_at], 1.0)
        matrix = self.terms[:, 0] / compute
        moved = self.terms[:, 2] / value[self.memory_at]
        is_compute = matrix + self.terms[:, 1] / self.vector > moved
        convert, launch = (self.names.index(name) for name in ("convert", "launch"))
        turned = self.terms[:, 3] * value[convert]
        begun = self.terms[:, 4] * self.launch_s * value[launch]
        total = count * (np.where(is_compute, matrix + self.terms[:, 1] / self.vector, moved) + turned + begun)
        gpu = np.bincount(self.owner, total, n)
        slope = np.zeros((n, len(theta)))
        width = len(theta)
        fitted = is_compute & (self.compute_at >= 0)
        for chosen, at, part in ((fitted, self.compute_at, -matrix), (~is_compute, self.memory_at, -moved)):
            index = self.owner[chosen] * width + at[chosen]
            slope += np.bincount(index, (part * count)[chosen], n * width).reshape(n, width)
        slope[:, convert] += np.bincount(self.owner, turned * count, n)
        slope[:, launch] += np.bincount(self.owner, begun * count, n)
        host = self.launches @ np.array(self.host)
        slope[host > gpu] = 0
        return np.maximum(gpu, host), slope

    def solve(self, chosen: np.ndarray) -> np.ndarray:
        """The constants, as logarithms, that fit the samples ``chosen`` (a mask)."""

        def residuals(theta: np.ndarray) -> np.ndarray:
            seconds, _ = self.predict(theta)
            errors = np.log(seconds[chosen] / self.seconds[chosen]) / DATA_SPREAD
            return np.concatenate([_soft(errors), (theta - self.theta0) / self.spread])

        def jacobian(theta: np.ndarray) -> np.ndarray:
            seconds, slope = self.predict(theta)
            errors = np.log(seconds[chosen] / self.seconds[chosen]) / DATA_SPREAD
            data = slope[chosen] / seconds[chosen, None] / DATA_SPREAD * _soft_slope(errors)[:, None]
            return np.concatenate([data, np.diag(1 / self.spread)])

        bounds = (self.theta0 - 10, np.maximum(self.theta0 + 1e-6, np.log(MOST)))
        return np.asarray(least_squares(residuals, self.theta0, jac=jacobian, bounds=bounds, max_nfev=60).x)


def _kind(row: str) -> str:
    """A row's kind without its layout and its column."""
    return row.removeprefix("channels-last.").split(".")[0]


def _soft(errors: np.ndarray) -> np.ndarray:
    """Large errors count by their root: a net that runs on other kernels than assumed must not bend the rest."""
    return np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))


def _soft_slope(errors: np.ndarray) -> np.ndarray:
    root = np.abs(_soft(errors))
    return np.where(root > 1e-9, np.abs(errors) / np.sqrt(1 + errors**2) / np.maximum(root, 1e-9), 1.0)


def folds(groups: Sequence[str], count: int = 5, seed: int = 0) -> np.ndarray:
    """A fold for every sample; a group is in one fold. Groups are dealt in random order, each to the emptiest."""
    names = sorted(set(groups))
    random.Random(seed).shuffle(names)
    load = [0] * count
    chosen = {}
    for group in names:
        chosen[group] = load.index(min(load))
        load[chosen[group]] += groups.count(group)
    return np.array([chosen[group] for group in groups])


@dataclass(frozen=True)
class Scores:
    """Errors on held-out samples: shares, ``bias`` the median signed one; ``rank`` is Spearman's."""

    count: int
    median: float
    mean: float
    p90: float
    bias: float
    rank: float

    def text(self) -> str:
        """One line of a report."""
        return (
            f"n {self.count}, median {self.median:.1%}, mean {self.mean:.1%}, p90 {self.p90:.1%}, "
            f"bias {self.bias:+.1%}, rank correlation {self.rank:.3f}"
        )


def scores(predicted: np.ndarray, measured: np.ndarray) -> Scores:
    """How far ``predicted`` is from ``measured``."""
    from scipy.stats import spearmanr

    errors = predicted / measured - 1
    size = np.abs(errors)
    rank = float(spearmanr(predicted, measured).statistic) if len(size) > 2 else 1.0
    return Scores(
        len(size), float(np.median(size)), float(size.mean()), float(np.quantile(size, 0.9)),
        float(np.median(errors)), rank,
    )  # fmt: skip


def held_out(problem: Problem, count: int = 5, deals: int = DEALS) -> np.ndarray:
    """Seconds of every sample under constants fitted without its group, one row a deal of the folds."""
    groups = [sample.group for sample in problem.samples]
    found = np.zeros((deals, len(groups)))
    for deal in range(deals):
        fold = folds(groups, count, deal)
        for one in range(count):
            theta = problem.solve(fold != one)
            found[deal, fold == one] = problem.predict(theta)[0][fold == one]
    return found
