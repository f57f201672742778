"""Why a CSV could not be read: the file is walked once more, row by row, for the cell to name."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from graphcost.errors import DataFileError
from graphcost.fleet.columns import ALL_NUMBERS


def csv_error(source: str, path: Path, comment_lines: int, columns: Sequence[str]) -> DataFileError | None:
    """The first row that does not hold together; None where nothing of that kind is found."""
    numbers = [(index, name) for index, name in enumerate(columns) if name in ALL_NUMBERS]
    row = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(islice(file, comment_lines, None), strict=True)
            next(reader, None)
            for row, cells in enumerate(reader, start=1):
                if not cells:
                    continue
                if len(cells) != len(columns):
                    return DataFileError(
                        f"{source}: row {row} has {len(cells)} cells and the header {len(columns)}; write one cell "
                        "a column, separated by commas"
                    )
                for index, name in numbers:
                    if cells[index] != "" and not _is_number(cells[index]):
                        return DataFileError(
                            f"{source}: row {row}, column {name}: {cells[index]!r}; write {ALL_NUMBERS[name]}"
                        )
    except UnicodeDecodeError as error:
        return DataFileError(f"{source}: not UTF-8 text (byte {error.object[error.start]:#x} after row {row})")
    except (csv.Error, OSError) as error:
        return DataFileError(f"{source}: cannot be read as CSV after row {row} ({error})")
    return None


def _is_number(text: str) -> bool:
    """As polars reads numbers: no blanks around, no underscores, no thousands separators."""
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip() and "_" not in text
