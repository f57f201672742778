"""``graphcost fleet extract``: a job table from models and traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import say, working_on, write_result
from graphcost.errors import UsageError
from graphcost.fleet.extract import Extraction, extract
from graphcost.fleet.recorded import extract_recorded
from graphcost.fleet.writing import form_of
from graphcost.placing import AnalysisOptions, recipe_of
from graphcost.sim.traces import FORMATS, read_trace


@click.command(
    "extract",
    epilog=examples(
        "graphcost fleet extract --manifest jobs.csv --output table.parquet",
        "graphcost fleet extract --trace philly.csv --output examples.parquet",
    ),
)
@click.option("--manifest", metavar="FILE.csv", help="One row a job: model, gpus, batch, arch.")
@click.option(
    "--trace",
    metavar="FILE.csv",
    help=f"Instead: a cluster's trace ({', '.join(FORMATS)}; its columns tell). Models are given by a declared "
    "rule, so that the table is an example and says so.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of --trace: models of a class.")
@click.option("--skip-bad-rows", is_flag=True, help="Of --trace: leave out rows that cannot be read, and count them.")
@click.option("--output", required=True, metavar="FILE", help="The job table: .parquet or .csv.")
@shared.cluster_option("pai-paper-base")
@click.option("--precision", default="fp32", show_default=True, help="Where a row does not say.")
@click.option("--optimizer", default="adam", show_default=True, help="Where a row does not say.")
@click.option(
    "--lookups",
    default="all",
    show_default=True,
    metavar="all|uniform|zipf:EXPONENT",
    help="Which rows of sparse tables a batch touches, where a row does not say.",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Models read at once.")
@shared.shared_flags
def command(
    manifest: str | None, trace: str | None, seed: int, skip_bad_rows: bool, output: str, cluster: str | None,
    workers: int, quiet: bool, debug: bool, **training: Any,
) -> int:  # fmt: skip
    """Make a table of jobs from models and torch.profiler traces that a manifest names, or from a cluster's trace.

    Columns of the manifest: model; gpus, batch, arch, job_id, dims ("seq=128"), precision,
    optimizer, lookups, each with a default; and any column of the job table that a source
    does not tell. Rows that fail are reported by row and column, the others are written.
    """
    form_of(output)
    options = AnalysisOptions(cluster=cluster or "pai-paper-base", profile="paper", **training)
    recipe_of(options)  # a wrong name fails before any model is read
    if (manifest is None) == (trace is None):
        raise UsageError("give --manifest FILE.csv (models) or --trace FILE.csv (a cluster's trace), one of them")
    if trace is not None:
        return _from_trace(Path(trace), output, options, seed=seed, skip_bad_rows=skip_bad_rows, quiet=quiet)
    assert manifest is not None
    with working_on(f"reading the models of {manifest}", quiet=quiet):
        found = extract(manifest, options, workers=workers)
    _tell(found, quiet=quiet)
    found.write(output)
    write_result(f"{output}: {len(found.jobs)} of {len(found.rows)} jobs{_what_is_missing(found)}")
    return found.exit_code


def _from_trace(
    path: Path, output: str, options: AnalysisOptions, *, seed: int, skip_bad_rows: bool, quiet: bool
) -> int:
    trace = read_trace(path, skip_bad_rows=skip_bad_rows)
    several = len(trace.parts) > 1
    rows = [
        replace(row, job_id=f"{number}/{row.job_id}") if several else row
        for number, part in enumerate(trace.parts, start=1)
        for row in part
    ]
    with working_on(f"reading the models of {path}", quiet=quiet):
        found = extract_recorded(rows, f"{trace.format}: {trace.source}", output, options, seed=seed)
    for reason, count in trace.skipped.items():
        say(f"{path}: {count:,} rows left out: {reason}", quiet=quiet)
    shared_gpus = sum(1 for row in rows if row.worker is not None and row.worker.gpu_milli < 1000)
    if shared_gpus:
        say(f"{path}: {shared_gpus:,} jobs have a share of a GPU; each counts as one cNode", quiet=quiet)
    say(f"{path}: licence {trace.licence}", quiet=quiet)
    say(f"{output}: {found.mark}", quiet=quiet)
    counts = "; ".join(
        ", ".join(f"{name} {count:,}" for name, count in one.items()) for one in (found.models, found.archs)
    )
    write_result(f"{output}: {found.jobs:,} jobs; {counts}")
    return 0


def _tell(found: Extraction, *, quiet: bool) -> None:
    for row in found.rows:
        if row.error:
            say(f"error: {row.error}")
        for note in row.notes:
            say(f"{row.job_id}: {note}", quiet=quiet)


def _what_is_missing(found: Extraction) -> str:
    """Rows that failed, and cells that no source told."""
    parts = []
    if found.failed:
        parts.append(f"{len(found.failed)} failed (above)")
    if found.empty:
        named = ", ".join(f"{name} in {count}" for name, count in found.empty.items())
        parts.append(f"empty cells: {named}; a manifest's column of that name fills them")
    return "".join(f"; {part}" for part in parts)
