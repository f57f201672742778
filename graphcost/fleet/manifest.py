"""A manifest of jobs to make a table from: CSV, one row a job, a model and how it is trained."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphcost.errors import DataFileError, GraphcostError, UsageError
from graphcost.fleet.columns import ALL_NUMBERS, ID, MOST, TEXTS
from graphcost.registry import did_you_mean

MODEL = "model"
COLUMNS: Mapping[str, str] = {
    MODEL: "a model as `analyze` takes it (zoo:NAME, a file), or a torch.profiler trace (.json, .json.gz)",
    "gpus": "the number of GPUs, a whole number from 1",
    "batch": "samples per GPU and step, a whole number from 1",
    "arch": "an architecture of a job table",
    ID: "an id of the job's own",
    "dims": "sizes of open dimensions, NAME=N, separated by blanks",
    "precision": "a precision",
    "optimizer": "an optimizer",
    "lookups": "all, uniform or zipf:EXPONENT",
}
"""Only ``model`` must be there; an empty cell is the default."""

STATED = (*(name for name in ALL_NUMBERS if name not in ("cnodes", "batch")), *TEXTS)
"""Columns of the job table that a manifest may have too: they stand in for what its source does not tell."""


class CellError(Exception):
    """A cell that is wrong: its column, the message, the exit code of its kind."""

    def __init__(self, column: str, cause: GraphcostError) -> None:
        super().__init__(column, str(cause))
        self.column = column
        self.cause = cause


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One job. ``number`` counts from 1, without the header; ``cells`` hold no empty ones."""

    number: int
    cells: Mapping[str, str]
    folder: Path

    @property
    def model(self) -> str:
        """The source; a file is looked for beside the manifest where it is not at hand."""
        named = self.cells[MODEL]
        beside = self.folder / named
        return str(beside) if not Path(named).exists() and beside.exists() else named

    @property
    def job_id(self) -> str:
        """The manifest's, else its row and model."""
        return self.cells.get(ID, f"{self.number}:{self.cells.get(MODEL, '')}")

    def whole(self, column: str) -> int | None:
        """A whole number from 1, None where the cell is empty; raises ``CellError``."""
        text = self.cells.get(column)
        if text is None:
            return None
        if not text.isdecimal() or int(text) < 1 or int(text) > MOST:
            raise wrong(column, f"{text!r}; write {COLUMNS[column]}")
        return int(text)

    def dims(self) -> dict[str, int]:
        """Sizes by name; raises ``CellError``."""
        found = {}
        for part in self.cells.get("dims", "").split():
            name, separator, size = part.partition("=")
            if not (name and separator and size.isdecimal()):
                raise wrong("dims", f"{part!r}; write {COLUMNS['dims']}")
            found[name] = int(size)
        return found

    def stated(self) -> dict[str, float | str]:
        """What the manifest says itself of the job table's columns; raises ``CellError``."""
        found: dict[str, float | str] = {}
        for column in STATED:
            text = self.cells.get(column)
            if text is None:
                continue
            if column in TEXTS:
                found[column] = text
                continue
            try:
                value = float(text)
            except ValueError:
                value = -1.0
            if not 0 <= value <= MOST:
                raise wrong(column, f"{text!r}; write {ALL_NUMBERS[column]}")
            found[column] = value
        return found


def wrong(column: str, message: str) -> CellError:
    """An error in the manifest itself."""
    return CellError(column, DataFileError(message))


def read_manifest(source: str) -> list[ManifestRow]:
    """All rows; raises ``DataFileError`` for a file that is no table, ``UsageError`` for a repeated id."""
    path = Path(source)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except UnicodeDecodeError as error:
        raise DataFileError(f"{source}: not UTF-8 text; write the manifest as CSV") from error
    except (csv.Error, OSError) as error:
        raise DataFileError(
            f"{source}: cannot be read as CSV ({getattr(error, 'strerror', None) or error})"
        ) from error
    lines = [line for line in lines if line]
    if not lines:
        raise DataFileError(f"{source}: is empty; write a header with the column {MODEL}")
    header = [name.strip() for name in lines[0]]
    _check_header(source, header)
    rows = []
    for number, line in enumerate(lines[1:], start=1):
        if len(line) != len(header):
            raise DataFileError(
                f"{source}: row {number} has {len(line)} cells and the header {len(header)}; write one cell a column"
            )
        cells = {name: cell.strip() for name, cell in zip(header, line, strict=True) if cell.strip()}
        rows.append(ManifestRow(number, cells, path.parent))
    if not rows:
        raise DataFileError(f"{source}: has a header and no jobs; write one row a job")
    _check_ids(source, rows)
    return rows


def _check_header(source: str, header: list[str]) -> None:
    known = (*COLUMNS, *STATED)
    for name in header:
        if name not in known:
            raise DataFileError(
                f"{source}: no column {name!r}{did_you_mean(name, known)} (columns: {', '.join(known)})"
            )
        if header.count(name) > 1:
            raise DataFileError(f"{source}: column {name} is there {header.count(name)} times; keep one")
    if MODEL not in header:
        raise DataFileError(f"{source}: has no column {MODEL}; write {COLUMNS[MODEL]}")


def _check_ids(source: str, rows: list[ManifestRow]) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        if row.job_id in seen:
            raise UsageError(
                f"{source}: row {row.number}, column {ID}: {row.job_id!r} is in row {seen[row.job_id]} too; "
                "every job needs an id of its own"
            )
        seen[row.job_id] = row.number
