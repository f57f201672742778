"""``graphcost fleet extract``: a job table from models and traces."""

from __future__ import annotations

from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import say, working_on, write_result
from graphcost.fleet.extract import Extraction, extract
from graphcost.fleet.writing import form_of
from graphcost.placing import AnalysisOptions, recipe_of


@click.command(
    "extract",
    epilog=examples(
        "graphcost fleet extract --manifest jobs.csv --output table.parquet",
    ),
)
@click.option("--manifest", required=True, metavar="FILE.csv", help="One row a job: model, gpus, batch, arch.")
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
    manifest: str, output: str, cluster: str | None, workers: int, quiet: bool, debug: bool, **training: Any
) -> int:  # fmt: skip
    """Make a table of jobs from the models and torch.profiler traces that a manifest names.

    Columns of the manifest: model; gpus, batch, arch, job_id, dims ("seq=128"), precision,
    optimizer, lookups, each with a default; and any column of the job table that a source
    does not tell. Rows that fail are reported by row and column, the others are written.
    """
    form_of(output)
    options = AnalysisOptions(cluster=cluster or "pai-paper-base", profile="paper", **training)
    recipe_of(options)  # a wrong name fails before any model is read
    with working_on(f"reading the models of {manifest}", quiet=quiet):
        found = extract(manifest, options, workers=workers)
    _tell(found, quiet=quiet)
    found.write(output)
    write_result(f"{output}: {len(found.jobs)} of {len(found.rows)} jobs{_what_is_missing(found)}")
    return found.exit_code


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
