"""``graphcost ops``: the rules, and what they say of a model."""

from __future__ import annotations

import json
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import text_width, working_on, write_result
from graphcost.graph import build_graph, operators
from graphcost.ops import RULES, find_rule
from graphcost.report.tables import table_text
from graphcost.sources import load_model


@click.command(
    "ops",
    epilog=examples(
        "graphcost ops",
        "graphcost ops model.onnx",
    ),
)
@click.argument("model", required=False, shell_complete=completing.models)
@shared.size_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@shared.shared_flags
def command(model: str | None, form: str, quiet: bool, debug: bool, **sizes: Any) -> int:
    """List the operator rules with their sources; for a MODEL, its operators as counted, free or unknown."""
    rows = _rules() if model is None else _of_model(model, sizes, quiet)
    if form == "json":
        write_result(json.dumps({"schema_version": 1, "command": "ops", "ops": rows}, indent=2))
    else:
        columns = ["operator", "class", "source"] if model is None else ["operator", "answer", "count", "example"]
        write_result(table_text(columns, [[str(row[name]) for name in columns] for row in rows], width=text_width()))
    return 0


def _rules() -> list[dict[str, Any]]:
    return [
        {
            "operator": f"{rule.domain}.{rule.op_type}" if rule.domain else rule.op_type,
            "class": str(rule.op_class),
            "source": rule.source,
        }
        for rule in sorted(RULES.values(), key=lambda rule: (rule.domain, rule.op_type))
    ]


def _of_model(model: str, sizes: dict[str, Any], quiet: bool) -> list[dict[str, Any]]:
    with working_on(f"reading {model}", quiet=quiet):
        graph = build_graph(load_model(model, shared.load_options(**sizes)))
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _, node, cost in operators(graph):
        rule = find_rule(node)
        answer = "unknown" if cost is None else "free" if rule is not None and rule.is_free else "counted"
        entry = found.setdefault(
            (answer, node.kind), {"operator": node.kind, "answer": answer, "count": 0, "example": node.name}
        )
        entry["count"] += 1
    order = {"unknown": 0, "counted": 1, "free": 2}
    return sorted(found.values(), key=lambda row: (order[row["answer"]], -row["count"], row["operator"]))
