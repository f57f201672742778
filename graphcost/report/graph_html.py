"""The op graph as a self-contained page: operators in execution order, inputs linked to their makers."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from graphcost.graph import operators
from graphcost.ir import Model, TensorSpec
from graphcost.units import format_bytes, format_count

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

_STYLE = """
body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem}table{border-collapse:collapse}
td,th{padding:.15rem .7rem;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
tr:nth-child(even){background:#8881}tr:target{outline:2px solid #3b7dd8}.unknown{color:#b00020}
"""


def graph_html(graph: OpGraph) -> str:
    """One row an operator: name, inputs with shapes, output shape, FLOPs, bytes, parameters."""
    model: Model = graph.graph["model"]
    makers = {name: node_id for node_id, node, _ in operators(graph) for name in node.output_names if name}
    rows = []
    for node_id, node, cost in operators(graph):
        inputs = "<br>".join(
            f"{_linked(name, makers)} {_shape(spec)}"
            for name, spec in zip(node.input_names, node.inputs, strict=False)
            if spec is not None
        )
        work = (
            '<td class="n unknown" colspan="2">no rule</td>'
            if cost is None
            else f'<td class="n">{format_count(cost.flops)}</td><td class="n">{format_bytes(cost.bytes)}</td>'
        )
        params = sum(param.numel for _, param in node.params)
        rows.append(
            f'<tr id="{node_id}"><td>{escape(node.kind)}</td><td>{escape(node.name)}</td><td>{inputs}</td>'
            f"<td>{'<br>'.join(_shape(spec) for spec in node.outputs)}</td>{work}"
            f'<td class="n">{format_count(params) if params else ""}</td></tr>'
        )
    head = "".join(f"<th>{name}</th>" for name in ("operator", "name", "inputs", "outputs"))
    head += "".join(f'<th class="n">{name}</th>' for name in ("FLOP", "bytes", "parameters"))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(model.name)}</title>'
        f"<style>{_STYLE}</style>"
        f"<h1>{escape(model.name)}</h1><table><tr>{head}</tr>\n" + "\n".join(rows) + "</table></html>\n"
    )


def _linked(name: str, makers: Mapping[str, str]) -> str:
    return f'<a href="#{makers[name]}">{escape(name)}</a>' if name in makers else escape(name)


def _shape(spec: TensorSpec | None) -> str:
    return "?" if spec is None else f"{'x'.join(map(str, spec.shape)) or 'scalar'} {spec.dtype}"
