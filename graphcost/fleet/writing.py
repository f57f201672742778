"""Per-job output as CSV or Parquet, block by block; a file appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.fleet.columns import ALL_NUMBERS
from graphcost.fleet.table import JobTable, polars_module

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def form_of(output: str) -> str:
    """``csv`` or ``parquet`` by the suffix; raises ``UsageError``."""
    form = SUFFIXES.get(Path(output).suffix.lower())
    if form is None:
        raise UsageError(f"--output {output}: jobs are written as .parquet or .csv; name the file so")
    return form


def write_frames(
    output: str, frames: Iterator[pl.DataFrame], schema: Mapping[str, Any], marks: Mapping[str, str]
) -> None:
    """All blocks into one file, with what a table that is not measured says about itself.

    Raises ``UsageError`` where the file cannot be written, and whatever the blocks raise.
    """
    pl = polars_module()
    form, path = form_of(output), Path(output)
    if path.is_dir():
        raise UsageError(f"--output {output}: is a folder; name a file")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            if form == "csv":
                _csv(partial, frames, schema, marks)
            else:
                # A source that plays back the blocks lets polars write them as they come.
                lazy = pl.io.plugins.register_io_source(lambda *_: frames, schema=dict(schema))
                lazy.sink_parquet(partial, metadata=dict(marks) or None, maintain_order=True)
            partial.replace(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise UsageError(f"--output {output}: cannot be written ({reason})") from error
    finally:
        partial.unlink(missing_ok=True)


def _csv(path: Path, frames: Iterator[pl.DataFrame], schema: Mapping[str, Any], marks: Mapping[str, str]) -> None:
    with path.open("wb") as file:
        for key, said in marks.items():
            file.write(f"# {key}: {said}\n".encode())
        for index, frame in enumerate(frames):
            frame.write_csv(file, include_header=index == 0)


class Writer:
    """Per-job output of a table: its own columns, then those that a command adds."""

    def __init__(self, output: str, table: JobTable) -> None:
        form_of(output)
        if Path(output).exists() and Path(output).resolve() == table.path.resolve():
            raise UsageError(f"--output {output}: is the table itself; name another file")
        self._output = output
        self._table = table

    def write(self, frames: Iterator[pl.DataFrame], added: Mapping[str, str]) -> None:
        """``added``: column -> polars type by name. A column that the table has already is written anew."""
        pl = polars_module()
        table = self._table
        own = table.schema or {name: pl.Float64 if name in ALL_NUMBERS else pl.String for name in table.columns}
        schema = {**own, **{name: getattr(pl, kind) for name, kind in added.items()}}
        write_frames(self._output, frames, schema, table.marks)
