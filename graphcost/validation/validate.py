"""Whole tables: read, predicted, scored and held against their tolerances."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphcost.errors import ModelFileError, UsageError
from graphcost.predict import Profile
from graphcost.registry import did_you_mean
from graphcost.validation.predicting import Predictor
from graphcost.validation.scoring import Scores, frame_of, score
from graphcost.validation.tables import MeasuredRow, read_table
from graphcost.validation.tolerances import Tolerance, broken, tolerance_of

if TYPE_CHECKING:
    import pandas as pd

SHIPPED_TABLES = Path(__file__).parent / "measured"
"""Published measurements, a sample of those whose licence allows it (``benchmarks/measured``)."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores of every table and of all together; ``frame``: every row (see ``scoring.COLUMNS``).

    ``broken``: (table, limit, what was reached) of every figure out of tolerance.
    """

    tables: tuple[Scores, ...]
    overall: Scores
    frame: pd.DataFrame
    broken: tuple[tuple[str, Tolerance, float], ...]


def validate(
    paths: Sequence[Path],
    *,
    profile: Profile = Profile.CALIBRATED,
    where: Sequence[tuple[str, str]] = (),
    sample: int | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    cache: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Validation:
    """Predict the rows of CSV tables and compare.

    ``where``: (column, value) pairs that a row must have. ``sample``: that many rows of
    each table, drawn with ``seed``. ``tolerance``: a limit on every table's median error,
    instead of the shipped ones. ``cache``: a folder for traces of models that are not
    the zoo's. Raises ``ModelFileError`` for a table that cannot be read,
    ``UsageError`` for a column that is none and where no row is left.
    """
    import pandas as pd

    predictor = Predictor(profile, cache)
    frames, scores = [], []
    for path in paths:
        rows = list(_chosen(read_table(path), where))
        if sample is not None and sample < len(rows):
            rows = sorted(random.Random(seed).sample(rows, sample), key=lambda row: row.line)
        progress(f"{path.name}: {len(rows)} rows")
        frame = frame_of(list(predictor.predict(rows)))
        frames.append(frame)
        scores.append(score(path.stem, frame))
    whole = pd.concat([frame for frame in frames if len(frame)]) if any(map(len, frames)) else frames[0]
    if not len(whole):
        raise UsageError("no row is left: the tables are empty or --where fits none")
    limits = (lambda table: (Tolerance("median_error", tolerance),)) if tolerance is not None else tolerance_of
    out = tuple(
        (one.table, limit, float(getattr(one, limit.figure)))
        for one in scores
        for limit in broken(one, limits(one.table))
    )
    return Validation(tuple(scores), score("overall", whole), whole, out)


def _chosen(rows: Iterable[MeasuredRow], where: Sequence[tuple[str, str]]) -> Iterable[MeasuredRow]:
    """Rows that have every wished value; numbers compare as numbers."""
    known = MeasuredRow.__slots__
    for column, _ in where:
        if column not in known:
            raise UsageError(f"--where {column}: no such column{did_you_mean(column, known)} ({', '.join(known)})")
    return (row for row in rows if all(_equal(getattr(row, column), value) for column, value in where))


def _equal(found: object, wished: str) -> bool:
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        try:
            return float(found) == float(wished)
        except ValueError:
            return False
    return ("" if found is None else str(found)) == wished


def tables_in(names: Sequence[str]) -> list[Path]:
    """Files as named; of a folder every CSV file that is a table of step times. None named: those that ship."""
    found: list[Path] = []
    for name in names or (str(SHIPPED_TABLES),):
        path = Path(name)
        if not path.is_dir():
            found.append(path)
            continue
        inside = [file for file in sorted(path.glob("*.csv")) if _is_table(file)]
        if not inside:
            raise ModelFileError(f"{path}: no table of step times in this folder")
        found += inside
    return found


def _is_table(path: Path) -> bool:
    try:
        read_table(path)
    except ModelFileError as error:
        return "no column" not in str(error)
    return True
