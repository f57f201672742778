"""``graphcost zoo``: models built without a file or framework."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import text_width, write_result
from graphcost.models_zoo import DOMAINS, describe, names
from graphcost.report.tables import fields_text, table_text
from graphcost.units import format_count


@click.command(
    "zoo",
    epilog=examples(
        "graphcost zoo",
        "graphcost zoo resnet50",
    ),
)
@click.argument("name", required=False, shell_complete=completing.zoo)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@shared.shared_flags
def command(name: str | None, form: str, quiet: bool, debug: bool) -> int:
    """List the models of the zoo, or show NAME; analyse one as zoo:NAME."""
    entries = [(entry, describe(entry)) for entry in (names() if name is None else [name.removeprefix("zoo:")])]
    rows = [
        {"name": entry, **{k: v for k, v in asdict(found).items() if not callable(v)}} for entry, found in entries
    ]
    if form == "json":
        write_result(json.dumps({"schema_version": 1, "command": "zoo", "models": rows}, indent=2, default=str))
        return 0
    write_result(_listing(rows) if name is None else fields_text(rows[0]))
    return 0


def _listing(rows: list[dict[str, Any]]) -> str:
    """One table over all models, a heading before each domain, so that the columns line up; sources with NAME."""
    columns = ["name", "parameters", "title"]
    cells: list[list[str]] = []
    counts: list[tuple[str, int]] = []
    for domain in DOMAINS:
        members = [row for row in rows if row["domain"] == domain]
        counts += [(domain, len(members))] if members else []
        for row in members:
            cells.append([f"zoo:{row['name']}", format_count(row["published_params"]), row["title"]])
    header, *lines = table_text(columns, cells, right=(1,), width=text_width()).splitlines()
    parts, start = [header], 0
    for domain, count in counts:
        parts += ["", f"{domain} ({count})", *lines[start : start + count]]
        start += count
    return "\n".join(parts)
