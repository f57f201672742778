"""``graphcost validate``: predictions against measured tables."""

from __future__ import annotations

from pathlib import Path

import click

from graphcost.cli.completing import examples
from graphcost.cli.options import shared_flags
from graphcost.cli.output import say, text_width, write_result
from graphcost.errors import UsageError
from graphcost.predict import Profile
from graphcost.report.validation import VALIDATION_FORMATS, render_validation
from graphcost.units import parse_share
from graphcost.validation import tables_in, validate


@click.command(
    "validate",
    epilog=examples(
        "graphcost validate --sample 20 --seed 1",
        "graphcost validate step_times.csv --sample 20 --rows errors.csv",
    ),
)
@click.argument("tables", nargs=-1, metavar="[TABLE...]")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only rows with this value (repeatable).")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="N rows of each table, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of --sample.")
@click.option("--profile", type=click.Choice([str(one) for one in Profile]), default="calibrated", show_default=True)
@click.option(
    "--tolerance",
    type=parse_share,
    metavar="SHARE",
    help="Limit on each table's median error; else the shipped ones.",
)
@click.option("--format", "form", type=click.Choice(list(VALIDATION_FORMATS)), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option("--rows", metavar="FILE.csv", help="One line a row: prediction, interval, error, reason.")
@click.option(
    "--cache",
    envvar="GRAPHCOST_CACHE",
    type=Path,
    default=Path.home() / ".cache" / "graphcost",
    metavar="FOLDER",
    help="Where traces of timm models are kept (default ~/.cache/graphcost, or $GRAPHCOST_CACHE).",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 where a table is out of tolerance.")
@shared_flags
def command(
    tables: tuple[str, ...], where: tuple[str, ...], sample: int | None, seed: int, profile: str,
    tolerance: float | None, form: str, output: str | None, rows: str | None, cache: Path, exit_zero: bool,
    quiet: bool, debug: bool,
) -> int:  # fmt: skip
    """Predict every row of the measured TABLEs (CSV files or folders), and say how far off.

    Without a TABLE: the published measurements that graphcost ships.

    Exits 1 where a table is out of tolerance. Rows that cannot be predicted are counted
    with their reason.
    """
    found = validate(
        tables_in(tables),
        profile=Profile(profile),
        where=[_pair(text) for text in where],
        sample=sample,
        seed=seed,
        tolerance=tolerance,
        cache=cache,
        progress=lambda text: say(text, quiet=quiet),
    )
    if rows is not None:
        try:
            found.frame.to_csv(rows, index=False)
        except OSError as error:
            raise UsageError(f"--rows {rows}: cannot be written ({error.strerror})") from error
    write_result(render_validation(found, form, width=text_width()), output)
    return 1 if found.broken and not exit_zero else 0


def _pair(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--where {text!r}: write COLUMN=VALUE, e.g. gpu=T4")
    return column.strip(), value.strip()
