"""What the readers of recorded traces share: rows with places, bad cells collected, formats told by their columns."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphcost.errors import DataFileError
from graphcost.registry import Registry
from graphcost.sched import Resources


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One recorded job. None: the trace does not say.

    ``gpus``: GPUs asked for. ``duration_s``: its recorded run time on them; where there is none,
    ``gpu_hours`` bounds what it takes. ``model``: what the trace calls it. ``worker``: demand of one worker.
    """

    job_id: str
    submit_s: float
    gpus: int
    duration_s: float | None = None
    gpu_hours: tuple[float, float] | None = None
    model: str | None = None
    worker: Resources | None = None
    epochs: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """``parts``: independent traces of one file, each by submission. ``skipped``: reason -> rows left out."""

    format: str
    source: str
    licence: str
    parts: tuple[tuple[TraceRow, ...], ...]
    skipped: Counter[str]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the file."""

    line: int
    cells: dict[str, str]

    def number(self, column: str, *, least: float = 0.0, over: bool = False) -> float:
        """A number from ``least`` on (``over``: above it); raises ``BadCellError``."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise BadCellError(self.line, column, f"{text!r} is not a number") from None
        if not least <= value < float("inf") or (over and value == least):
            raise BadCellError(self.line, column, f"{text} is not {'over' if over else 'at least'} {least:g}")
        return value

    def whole(self, column: str, *, least: int = 0) -> int:
        """An integer from ``least`` on; raises ``BadCellError``."""
        value = self.number(column, least=least)
        if value != int(value):
            raise BadCellError(self.line, column, f"{self.text(column)} is not a whole number")
        return int(value)

    def text(self, column: str) -> str:
        """The cell; raises ``BadCellError`` for a row that is too short."""
        value = self.cells.get(column)
        if value is None:
            raise BadCellError(self.line, column, "the row has no such cell")
        return value.strip()


class BadCellError(Exception):
    """A cell that cannot be read; ``str`` says where and why."""

    def __init__(self, line: int, column: str, problem: str) -> None:
        super().__init__(f"row {line}, column {column}: {problem}")


class SkippedRow(Exception):  # noqa: N818  # not an error: the row is right
    """A row that is right but no job for a scheduler; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Format:
    """A reader: ``columns`` tell its files, ``job`` reads a row, ``part`` names the trace that it belongs to."""

    name: str
    columns: frozenset[str]
    source: str
    licence: str
    job: Callable[[Row], TraceRow]
    part: Callable[[Row], str] = field(default=lambda row: "")


FORMATS: Registry[Format] = Registry("trace format")


def read_trace(path: Path, *, skip_bad_rows: bool = False) -> Trace:
    """Read a trace; its format follows from its columns.

    Raises ``DataFileError`` with row and column of the first bad cell (and the number of further ones),
    unless ``skip_bad_rows`` counts them among the skipped.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns = frozenset(name.strip() for name in reader.fieldnames or ())
            chosen = next((form for form in FORMATS.values() if form.columns <= columns), None)
            if chosen is None:
                known = "; ".join(f"{form.name}: {', '.join(sorted(form.columns))}" for form in FORMATS.values())
                raise DataFileError(f"{path}: no known trace format has these columns (known: {known})")
            return _read(path, chosen, (Row(reader.line_num, cells) for cells in reader), skip_bad_rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataFileError(f"{path}: cannot be read as a trace ({error})") from error


def _read(path: Path, form: Format, rows: Iterator[Row], skip_bad_rows: bool) -> Trace:
    parts: dict[str, list[TraceRow]] = {}
    skipped: Counter[str] = Counter()
    bad: list[str] = []
    for row in rows:
        try:
            parts.setdefault(form.part(row), []).append(form.job(row))
        except SkippedRow as reason:
            skipped[str(reason)] += 1
        except BadCellError as problem:
            bad.append(str(problem))
    if bad and not skip_bad_rows:
        more = f", and {len(bad) - 1} more bad rows" if len(bad) > 1 else ""
        raise DataFileError(f"{path}: {bad[0]}{more}; --skip-bad-rows leaves them out")
    if bad:
        skipped["bad rows"] = len(bad)
    filled = [part for part in parts.values() if part]
    if not filled:
        why = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise DataFileError(f"{path}: no jobs in it" + (f" ({why})" if why else ""))
    return Trace(form.name, form.source, form.licence, tuple(_from_zero(part) for part in filled), skipped)


def _from_zero(rows: Sequence[TraceRow]) -> tuple[TraceRow, ...]:
    """By submission; equal ids are told apart."""
    seen: Counter[str] = Counter()
    named = []
    for row in sorted(rows, key=lambda row: row.submit_s):
        seen[row.job_id] += 1
        again = seen[row.job_id]
        named.append(row if again == 1 else replace(row, job_id=f"{row.job_id}#{again}"))
    return tuple(named)
