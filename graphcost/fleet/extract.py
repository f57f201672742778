"""A job table from models and traces: one row of a manifest, one job, or one error with its row and column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphcost.errors import GraphcostError, UnknownNameError, UsageError
from graphcost.features import JobFeatures, features_of
from graphcost.fleet.columns import ALL_NUMBERS, ARCH, ID, NULLABLE, REQUIRED, TEXTS
from graphcost.fleet.kinds import BY_SIZE, KINDS, WORDS, JobKind
from graphcost.fleet.manifest import MODEL, CellError, ManifestRow, read_manifest, wrong
from graphcost.fleet.table import polars_module
from graphcost.fleet.writing import write_frames
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions, recipe_of, resolve
from graphcost.registry import did_you_mean
from graphcost.traces import is_trace, trace_features

_KIND_OF = {kind.code: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class ExtractedJob:
    """A manifest's row: a job's columns, or what was wrong with it.

    ``empty``: columns of the job that its source does not tell. ``error`` names row and column; ``exit_code`` is
    its kind's.
    """

    number: int
    job_id: str
    columns: dict[str, Any] | None
    empty: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """All rows of a manifest, in its order."""

    source: str
    rows: tuple[ExtractedJob, ...]

    @property
    def jobs(self) -> tuple[ExtractedJob, ...]:
        """Rows that became jobs."""
        return tuple(row for row in self.rows if row.columns is not None)

    @property
    def failed(self) -> tuple[ExtractedJob, ...]:
        """Rows that did not."""
        return tuple(row for row in self.rows if row.columns is None)

    @property
    def empty(self) -> dict[str, int]:
        """Column -> jobs whose source does not tell it."""
        return dict(Counter(name for row in self.jobs for name in row.empty))

    @property
    def exit_code(self) -> int:
        """The largest of the rows that failed."""
        return max((row.exit_code for row in self.failed), default=0)

    def write(self, output: str) -> None:
        """The jobs as a table, .csv or .parquet; raises ``UsageError`` where there are none or it cannot be."""
        if not self.jobs:
            raise UsageError(f"{self.source}: none of {len(self.rows)} rows became a job; {output} is not written")
        pl = polars_module()
        columns = [
            *REQUIRED,
            *NULLABLE,
            *(c for c in ("gpu_hours", *TEXTS) if any(c in _known(j) for j in self.jobs)),
        ]
        whole = dict.fromkeys(("cnodes", "batch"), pl.Int64)
        schema = {name: whole.get(name, pl.Float64) if name in ALL_NUMBERS else pl.String for name in columns}
        values = {name: [_known(job).get(name) for job in self.jobs] for name in columns}
        write_frames(output, iter([pl.DataFrame(values, schema=schema, strict=False)]), schema, {})


def _known(job: ExtractedJob) -> dict[str, Any]:
    return job.columns or {}


def extract(manifest: str, options: AnalysisOptions, *, workers: int = 1) -> Extraction:
    """Every row of ``manifest`` as a job; ``options`` hold for rows that say nothing else.

    A row that fails is kept with its error, and the others go on. Raises ``DataFileError`` for a manifest that
    is no table.
    """
    rows = read_manifest(manifest)
    return Extraction(manifest, tuple(_extracted(manifest, rows, options, min(workers, len(rows)))))


def _extracted(
    source: str, rows: Iterable[ManifestRow], options: AnalysisOptions, workers: int
) -> Iterator[ExtractedJob]:
    jobs = [(source, row, options) for row in rows]
    if workers <= 1:
        yield from map(_one, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_one, jobs)


def _one(job: tuple[str, ManifestRow, AnalysisOptions]) -> ExtractedJob:
    """One row; an error is a result, so that nothing is lost and it can cross processes."""
    source, row, options = job
    try:
        return _job(row, options)
    except CellError as error:
        text = f"{source}: row {row.number}, column {error.column}: {error.cause}"
        return ExtractedJob(row.number, row.job_id, None, error=text, exit_code=error.cause.exit_code)


def _job(row: ManifestRow, options: AnalysisOptions) -> ExtractedJob:
    if MODEL not in row.cells:
        raise wrong(MODEL, "empty; write a model or a trace")
    gpus, batch, stated = row.whole("gpus"), row.whole("batch"), row.stated()
    word, kind = _kind(row)
    if is_trace(row.model):
        with _column(MODEL):
            traced = trace_features(row.model, arch=kind.arch if kind else None, gpus=gpus)
        found, notes = replace(traced.features, batch=batch), traced.notes
    else:
        found, notes = _features(row, kind, gpus or 1, batch, options), ()
    columns = {ID: row.job_id, **asdict(found), ARCH: word or found.arch}
    told = {name: value for name, value in stated.items() if columns.get(name) is None}
    columns |= told
    empty = tuple(name for name in found.unknown if columns.get(name) is None)
    return ExtractedJob(row.number, row.job_id, columns, empty, notes)


def _kind(row: ManifestRow) -> tuple[str, JobKind | None]:
    """The word for the table, and the kind it means: all-reduce by size is of the local one here, they send alike."""
    text = row.cells.get(ARCH)
    if text is None:
        return "", None
    code = WORDS.get(text.lower())
    if code is None:
        known = ", ".join(WORDS)
        raise CellError(
            ARCH,
            UnknownNameError(f"no architecture of a job table named {text!r}{did_you_mean(text, WORDS)} ({known})"),
        )
    if code == BY_SIZE:
        return "allreduce", next(kind for kind in KINDS if kind.arch == "allreduce")
    return _KIND_OF[code].id, _KIND_OF[code]


def _features(
    row: ManifestRow, kind: JobKind | None, gpus: int, batch: int | None, options: AnalysisOptions
) -> JobFeatures:
    """From the model's graph, each refusal under the column that asked for it."""
    chosen = replace(options, gpus=gpus, arch=kind.arch if kind else None)
    for column in ("precision", "optimizer", "lookups"):
        if column in row.cells:
            given: dict[str, Any] = {column: row.cells[column]}
            chosen = replace(chosen, **given)
            with _column(column):
                recipe_of(chosen)
    with _column("gpus"):
        resolve(chosen)
    chosen = replace(chosen, load=LoadOptions(batch=batch, dims=row.dims()))
    try:
        return features_of(row.model, chosen)
    except GraphcostError as error:
        raise CellError("dims" if str(error).startswith("--dim ") else MODEL, error) from error


@contextmanager
def _column(name: str) -> Iterator[None]:
    """What is refused inside is that column's."""
    try:
        yield
    except GraphcostError as error:
        raise CellError(name, error) from error
