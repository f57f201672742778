"""A table of jobs from CSV or Parquet, read in blocks through polars and checked cell by cell.

Rows are counted from 1, without the header. Nothing is dropped or mended: the first cell
that is wrong ends the reading with its row, column and value. Memory does not grow with
the table, but for eight bytes a row that find a repeated ``job_id``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcost.errors import DataFileError, UsageError
from graphcost.fleet.checking import Checker
from graphcost.fleet.columns import ALL_NUMBERS, ARCH, ID, NUMBERS, REQUIRED, TEXTS
from graphcost.fleet.csv_errors import csv_error
from graphcost.fleet.jobs import Jobs
from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, BY_SIZE, WORDS
from graphcost.hardware import Cluster
from graphcost.registry import did_you_mean

if TYPE_CHECKING:
    import polars as pl

BLOCK_ROWS = 1 << 17
"""Rows in memory at a time: large enough for numpy, small enough for caches."""

SYNTHETIC_KEY = "graphcost.synthetic"
EXAMPLE_KEY = "graphcost.example"
MARK_KEYS = (SYNTHETIC_KEY, EXAMPLE_KEY)
"""Parquet metadata, and beginnings of a CSV's comment lines, of a table that is not measured: one that was drawn
from distributions, one that a rule made from a cluster's trace."""

_PARQUET_MAGIC = b"PAR1"


def polars_module() -> Any:
    """polars; raises ``UsageError`` with the remedy where it is not installed."""
    try:
        import polars
    except ImportError:
        raise UsageError(
            "job tables are read with polars, which is missing: pip install 'graphcost[fleet]'"
        ) from None
    return polars


@dataclass(frozen=True, slots=True)
class JobTable:
    """An opened table. ``marks``: what one that is not measured says about itself, by the keys of ``MARK_KEYS``.

    ``unused``: columns that nothing reads; they are carried along into per-job output.
    """

    source: str
    path: Path
    is_parquet: bool
    columns: tuple[str, ...]
    marks: Mapping[str, str]
    comment_lines: int = 0
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def synthetic(self) -> str | None:
        """What a generated table says about itself."""
        return self.marks.get(SYNTHETIC_KEY)

    @property
    def example(self) -> str | None:
        """What a table says that a rule made from a cluster's trace."""
        return self.marks.get(EXAMPLE_KEY)

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns outside the schema."""
        return tuple(name for name in self.columns if name not in (*REQUIRED, *ALL_NUMBERS, *TEXTS))

    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should hear."""
        known = (*ALL_NUMBERS, *TEXTS)
        return tuple(f"{self.source}: column {name!r} is not used{did_you_mean(name, known)}" for name in self.unused)

    def blocks(self, cluster: Cluster, *, whole: bool = False) -> Iterator[tuple[pl.DataFrame, Jobs]]:
        """Checked blocks in the table's order; ``whole``: with the columns that nothing reads.

        ``cluster`` decides whether ``allreduce`` is local, and what one server can hold.
        Raises ``DataFileError``; a repeated ``job_id`` is found at the end.
        """
        pl = polars_module()
        checker = Checker(self.source, cluster)
        wanted = list(self.columns) if whole else [name for name in self.columns if name not in self.unused]
        try:
            frames = self._scan().select(wanted).collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True)
            for frame in frames:
                if frame.height:
                    yield frame, self._jobs(frame, checker)
        except pl.exceptions.PolarsError as error:
            raise self._unreadable(error) from error
        except OSError as error:
            raise DataFileError(f"{self.source}: cannot be read ({error.strerror or error})") from error
        if checker.rows == 0:
            raise DataFileError(f"{self.source}: has a header and no jobs; write one row a job")
        self._check_ids(checker)

    def _scan(self) -> pl.LazyFrame:
        pl = polars_module()
        if self.is_parquet:
            return pl.scan_parquet(self.path, glob=False)  # type: ignore[no-any-return]
        types = {name: pl.Float64 if name in ALL_NUMBERS else pl.String for name in self.columns}
        return pl.scan_csv(  # type: ignore[no-any-return]
            self.path, schema=types, skip_lines=self.comment_lines, glob=False, empty_string_is_null=True
        )

    def _jobs(self, frame: pl.DataFrame, checker: Checker) -> Jobs:
        """One block as columns; everything is checked here."""
        pl = polars_module()
        numbers = {name: checker.number(frame, name) for name in ALL_NUMBERS if name in self.columns}
        ids = frame.get_column(ID)
        words = frame.get_column(ARCH)
        codes = (
            words.cast(pl.String).str.strip_chars().str.to_lowercase()
            .replace_strict(dict(WORDS), default=None, return_dtype=pl.UInt8)
        )  # fmt: skip
        checker.words(words, codes)
        kind = codes.to_numpy().copy()
        cnodes = numbers["cnodes"]
        by_size = kind == BY_SIZE
        if by_size.any():
            fits = cnodes[by_size] <= checker.cluster.server.gpus
            kind[by_size] = np.where(fits, ALLREDUCE_LOCAL.code, ALLREDUCE_CLUSTER.code)
        checker.placed(kind, cnodes, words)
        checker.ids(ids)
        dense, sparse = numbers["dense_weight_bytes"], numbers["sparse_weight_bytes"]
        dense_model, dense_known = _or_moved(numbers.get("dense_model_bytes"), dense)
        sparse_model, sparse_known = _or_moved(numbers.get("sparse_model_bytes"), sparse)
        checker.rows += frame.height
        return Jobs(
            kind=kind, cnodes=cnodes, batch=numbers["batch"], input_bytes=numbers["input_bytes"],
            flops=numbers["flops"], mem_bytes=numbers["mem_bytes"], weight_bytes=dense + sparse,
            dense_model_bytes=dense_model, sparse_model_bytes=sparse_model,
            is_stated=dense_known & (sparse_known | (sparse == 0)), gpu_hours=numbers.get("gpu_hours"),
        )  # fmt: skip

    def _check_ids(self, checker: Checker) -> None:
        """Equal hashes are looked at again, in a second pass over the file that reads ids only."""
        pl = polars_module()
        repeated = checker.repeated_hashes()
        if not len(repeated):
            return
        seen: dict[str, int] = {}
        row = 0
        for frame in self._scan().select(ID).collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
            ids = frame.get_column(ID).cast(pl.String)
            suspects = np.flatnonzero(np.isin(ids.hash().to_numpy(), repeated))
            for index in suspects.tolist():
                name = ids[index]
                if name in seen:
                    raise DataFileError(
                        f"{self.source}: row {row + index + 1}, column {ID}: {name!r} is in row {seen[name]} too; "
                        "every job needs an id of its own"
                    )
                seen[name] = row + index + 1
            row += frame.height

    def _unreadable(self, error: Exception) -> DataFileError:
        text = str(error).strip().splitlines()
        first = text[0] if text else type(error).__name__
        if self.is_parquet:
            return DataFileError(
                f"{self.source}: not a readable Parquet file, truncated or damaged ({first}); write it again"
            )
        return csv_error(self.source, self.path, self.comment_lines, self.columns) or DataFileError(
            f"{self.source}: cannot be read as CSV ({first})"
        )


def _or_moved(stated: Any, moved: Any) -> tuple[Any, Any]:
    """What the table says, and where it does not, what the step moves: pulled weights and pushed gradients."""
    if stated is None:
        return moved, np.zeros(len(moved), dtype=bool)
    known = ~np.isnan(stated)
    return np.where(known, stated, moved), known


def open_jobs(source: str) -> JobTable:
    """The table in a file, its header checked; raises ``DataFileError`` or ``UsageError``."""
    pl = polars_module()
    path = Path(source)
    try:
        if path.is_dir():
            raise DataFileError(f"{source}: is a folder; give one CSV or Parquet file of jobs")
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError as error:
        raise DataFileError(f"{source}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataFileError(f"{source!r}: not a file name ({error})") from error
    if not head.strip():
        raise DataFileError(f"{source}: is empty; a job table begins with the columns {', '.join(REQUIRED)}")
    if head.startswith(_PARQUET_MAGIC):
        try:
            schema = dict(pl.read_parquet_schema(path))
            metadata = pl.read_parquet_metadata(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            first = str(error).splitlines()[0]
            raise DataFileError(
                f"{source}: not a readable Parquet file, truncated or damaged ({first}); write it again"
            ) from error
        marks = {key: metadata[key] for key in MARK_KEYS if key in metadata}
        table = JobTable(source, path, True, tuple(schema), marks, schema=schema)
    else:
        table = _open_csv(source, path, head)
    _check_columns(table)
    return table


def _open_csv(source: str, path: Path, head: bytes) -> JobTable:
    if path.suffix.lower() in (".parquet", ".pq"):
        raise DataFileError(f"{source}: is not Parquet, whatever its name says; write Parquet, or name it .csv")
    if head.startswith(b"version https://git-lfs"):
        raise DataFileError(f"{source}: is a Git LFS pointer, not the table; run git lfs pull")
    if b"\0" in head:
        raise DataFileError(f"{source}: is neither CSV nor Parquet; give a table of jobs in one of these formats")
    pl = polars_module()
    lines = head.decode("utf-8", "replace").splitlines()
    comments = 0
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    comment = (line.removeprefix("#").strip().partition(":") for line in lines[:comments])
    marks = {key: said.strip() for key, _, said in comment if key in MARK_KEYS}
    try:
        columns = pl.scan_csv(path, skip_lines=comments, infer_schema=False, glob=False).collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataFileError(f"{source}: cannot be read as CSV ({str(error).splitlines()[0]})") from error
    return JobTable(source, path, False, tuple(columns), marks, comments)


def _check_columns(table: JobTable) -> None:
    missing = [name for name in REQUIRED if name not in table.columns]
    if missing:
        like = did_you_mean(missing[0], table.unused).replace("did you mean", "is it called")
        found = ", ".join(table.columns[:12]) + (", ..." if len(table.columns) > 12 else "")
        raise DataFileError(
            f"{table.source}: no column {', '.join(missing)}{like} (found: {found}; needed: {', '.join(REQUIRED)})"
        )
    numbers = [name for name in NUMBERS if name in table.schema]
    for name in numbers:
        if not (table.schema[name].is_numeric() or table.schema[name].is_(polars_module().Null)):
            raise DataFileError(
                f"{table.source}: column {name} holds {table.schema[name]}; write {ALL_NUMBERS[name]}"
            )
