"""``graphcost graph``: the annotated op graph as a file."""

from __future__ import annotations

import json
from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.output import say, working_on, write_result
from graphcost.graph import build_graph
from graphcost.graph_io import graph_to_dict, to_dot, to_graphml
from graphcost.report.graph_html import graph_html
from graphcost.sources import load_model

_WRITERS = {
    "json": lambda graph: json.dumps(graph_to_dict(graph), indent=1),
    "graphml": to_graphml,
    "dot": to_dot,
    "html": graph_html,
}


@click.command("graph")
@click.argument("model")
@shared.size_options
@click.option("--format", "form", type=click.Choice(list(_WRITERS)), default="json", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@shared.shared_flags
def command(model: str, form: str, output: str | None, quiet: bool, debug: bool, **sizes: Any) -> int:
    """Export the op graph of MODEL with shapes, costs and parameters; the JSON loads again as a model."""
    with working_on(f"reading {model}", quiet=quiet):
        graph = build_graph(load_model(model, shared.load_options(**sizes)))
    for note in graph.graph["model"].notes:
        say(f"{model}: {note}", quiet=quiet)
    write_result(_WRITERS[form](graph), output)
    return 0
