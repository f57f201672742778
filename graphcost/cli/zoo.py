"""``graphcost zoo``: models built without a file or framework."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from graphcost.cli import options as shared
from graphcost.cli.output import text_width, write_result
from graphcost.models_zoo import describe, names
from graphcost.report.tables import fields_text, table_text
from graphcost.units import format_count


@click.command("zoo")
@click.argument("name", required=False)
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
    if name is not None:
        write_result(fields_text(rows[0]))
        return 0
    columns = ["name", "title", "parameters", "source"]
    cells = [
        [
            f"zoo:{row['name']}",
            str(row.get("title", "")),
            format_count(row.get("published_params") or 0),
            str(row.get("citation", "")),
        ]
        for row in rows
    ]
    write_result(table_text(columns, cells, right=(2,), width=text_width()))
    return 0
