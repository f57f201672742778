"""``graphcost graph``: the annotated op graph as a file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import say, working_on, write_result
from graphcost.errors import UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.graph_io import graph_to_dict, to_dot, to_graphml
from graphcost.report.graph_html import graph_html
from graphcost.sources import load_model
from graphcost.symbolic import SymbolicCost, symbolic_of, symbolic_to_dict

_WRITERS = {
    "json": lambda graph: json.dumps(graph_to_dict(graph), indent=1),
    "graphml": to_graphml,
    "dot": to_dot,
    "html": graph_html,
}


@click.command(
    "graph",
    epilog=examples(
        "graphcost graph model.onnx --output graph.json",
        "graphcost graph zoo:mlp --format dot",
    ),
)
@click.argument("model", shell_complete=completing.models)
@shared.size_options
@click.option("--format", "form", type=click.Choice(list(_WRITERS)), default="json", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@shared.symbolic_option
@shared.shared_flags
def command(model: str, form: str, output: str | None, symbolic: bool, quiet: bool, debug: bool, **sizes: Any) -> int:
    """Export the op graph of MODEL with shapes, costs and parameters; the JSON loads again as a model."""
    options = shared.load_options(**sizes)
    with working_on(f"reading {model}", quiet=quiet):
        expressions = symbolic_of(model, options) if symbolic else None
        graph = build_graph(load_model(model, _bound(options, expressions)))
    for note in graph.graph["model"].notes:
        say(f"{model}: {note}", quiet=quiet)
    if expressions is None:
        write_result(_WRITERS[form](graph), output)
        return 0
    if form != "json":
        raise UsageError("--symbolic: expressions are in the JSON form; use --format json")
    data = {**graph_to_dict(graph, expressions.ops), "symbolic": symbolic_to_dict(expressions)}
    write_result(json.dumps(data, indent=1), output)
    return 0


def _bound(options: LoadOptions, expressions: SymbolicCost | None) -> LoadOptions:
    """Sizes left open for the expressions still need a value for the graph beside them."""
    if expressions is None:
        return options
    return replace(options, dims={**expressions.example, **options.dims})
