"""Intervals of step times: the spread of every operator class, from published single-GPU steps.

``python -m benchmarks.fit intervals FOLDER [--write]``: predicts every row of one GPU, fits
the 10th and 90th percentile of log(measured / predicted) as a sum over classes of share of
time x spread (quantile regression, spreads at least 0, every network of a table weighs the
same), and counts how many rows the intervals cover, on the rows fitted and on networks left
out (five folds). ``--write`` puts the constants into ``graphcost/engine/spread.toml``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphcost.engine.spread import group_of
from graphcost.hardware import peak_dtype
from graphcost.report.tables import table_text
from graphcost.validation import MeasuredRow, Outcome, Predictor, read_table, tables_in

FILE = Path(__file__).parents[2] / "graphcost" / "engine" / "spread.toml"
LEVEL = 0.8
BOUNDS = (0.05, 1.2)
"""Of a spread, on a log scale: no class is known within 5 %, none is off by more than 3.3 times alone."""
FOLDS = 5
FEWEST_ROWS = 10
"""A kind of device with fewer rows is not covered."""
UNCOVERED_FACTOR = 1.5


def rows_of(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One line a row: network, kind of device, log(measured / predicted), and a column of time share per class."""
    lines: list[dict[str, Any]] = []
    for one in outcomes:
        if one.step is None or one.job is None or not one.row.step_s:
            continue
        seconds = one.step.class_seconds
        whole = sum(seconds.values())
        shares: dict[str, float] = {}
        for name, part in seconds.items():
            shares[group_of(name)] = shares.get(group_of(name), 0.0) + part / whole
        device = one.job.cluster.device
        lines.append(
            {
                "table": one.row.table, "model": one.row.model_id,
                "kind": f"{device.arch} {peak_dtype(one.job.recipe.precision)}",
                "log": float(np.log(one.row.step_s / one.step.step_s)),
                **{f"share {name}": part for name, part in shares.items()},
            }
        )  # fmt: skip
    return pd.DataFrame(lines).fillna(0.0)


def _drawn(path: Path, most: int) -> list[MeasuredRow]:
    """Rows of one GPU, at most so many, in the table's order."""
    single = [row for row in read_table(path) if (row.gpus or 1) == 1]
    if len(single) > most:
        single = sorted(random.Random(0).sample(single, most), key=lambda row: row.line)
    return single


def quantile_spreads(shares: np.ndarray, values: np.ndarray, weights: np.ndarray, level: float) -> np.ndarray:
    """Spreads s >= 0 whose ``shares @ s`` is the ``level`` quantile of ``values``: least pinball loss."""
    from scipy import sparse
    from scipy.optimize import linprog

    count, classes = shares.shape
    cost = np.concatenate([np.full(classes, 1e-6), level * weights, (1 - level) * weights])
    equal = sparse.hstack([sparse.csr_matrix(shares), sparse.eye(count), -sparse.eye(count)])
    bounds = [BOUNDS] * classes + [(0, None)] * (2 * count)
    found = linprog(cost, A_eq=equal, b_eq=values, bounds=bounds, method="highs")
    return np.asarray(found.x[:classes])


def fit(frame: pd.DataFrame, classes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) spreads by class, on a log scale."""
    weights = 1 / frame.groupby(["table", "model"])["log"].transform("size").to_numpy()
    shares, logs = frame[classes].to_numpy(), frame["log"].to_numpy()
    tail = (1 + LEVEL) / 2
    low, high = (quantile_spreads(shares, sign * logs, weights, tail) for sign in (-1, 1))
    return low, high


def covered(frame: pd.DataFrame, classes: list[str], spreads: tuple[np.ndarray, np.ndarray]) -> pd.Series:
    """Which measured steps lie inside."""
    low, high = (frame[classes].to_numpy() @ one for one in spreads)
    return frame["log"].between(pd.Series(-low, frame.index), pd.Series(high, frame.index))


def share(frame: pd.DataFrame, inside: pd.Series) -> float:
    """Coverage with every network of a table weighing the same."""
    return float(inside.groupby([frame["table"], frame["model"]]).mean().mean())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit intervals", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rows", type=int, default=400, help="of each table at most, drawn with a fixed seed")
    parser.add_argument(
        "--cache", type=Path, default=Path.home() / ".cache" / "graphcost", help="traces of timm models"
    )
    chosen = parser.parse_args(arguments)
    single = [row for path in tables_in([str(chosen.folder)]) for row in _drawn(path, chosen.rows)]
    frame = rows_of(list(Predictor(cache=chosen.cache).predict(single)))
    classes = sorted(name for name in frame if name.startswith("share "))
    spreads = fit(frame, classes)
    networks = sorted(frame["model"].unique())
    fold_of = {name: index % FOLDS for index, name in enumerate(np.random.default_rng(0).permutation(networks))}
    folds = frame["model"].map(fold_of)
    held = pd.concat(
        [covered(frame[folds == k], classes, fit(frame[folds != k], classes)) for k in range(FOLDS)]
    ).sort_index()
    lines = [
        [name.removeprefix("share "), f"{low:.2f}", f"{high:.2f}"]
        for name, low, high in zip(classes, *spreads, strict=True)
    ]
    print(table_text(["class", "low", "high"], lines, right=(1, 2)))
    inside = covered(frame, classes, spreads)
    reached = share(frame, inside), share(frame, held)
    print(
        f"{len(frame)} rows of {len(networks)} networks; covered {reached[0]:.3f}, networks left out {reached[1]:.3f}"
    )
    kinds = frame["kind"].value_counts()
    if chosen.write:
        FILE.write_text(
            _toml(classes, spreads, sorted(kinds[kinds >= FEWEST_ROWS].index), len(frame), reached), "utf-8"
        )
    return 0


def _toml(
    classes: list[str],
    spreads: tuple[np.ndarray, np.ndarray],
    kinds: list[str],
    rows: int,
    reached: tuple[float, float],
) -> str:
    lines = [
        "# 80 % intervals of steps without communication: log(measured / predicted) by group of operator classes.",
        "# Written by `python -m benchmarks.fit intervals FOLDER --write`.",
        f'source = "{rows} single-GPU rows of published tables; every network of a table weighs the same"',
        f"fitted_coverage = {reached[0]:.3f}",
        f"held_out_coverage = {reached[1]:.3f}  # networks left out of the fit, five folds",
        f"uncovered_factor = {UNCOVERED_FACTOR}  # assumed: where no table has the architecture and dtype",
        "covered = [",
        *(f'    "{kind}",' for kind in kinds),
        "]",
    ]
    for side, values in zip(("low", "high"), spreads, strict=True):
        lines += ["", f"[{side}]"]
        lines += [f"{name.removeprefix('share ')} = {value:.3f}" for name, value in zip(classes, values, strict=True)]
    lines += ["", "[curves]", "low = 0.2", "high = 0.2", 'source = "20 %, assumed"', ""]
    return "\n".join(lines)
