"""An op graph as a file: JSON that loads again, GraphML and DOT for other tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcost.errors import ModelFileError
from graphcost.graph import operators
from graphcost.ir import BatchSource, Model, OpCost, OpNode, Param, ParamKind, TensorSpec

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

FORMAT = "graphcost-graph"
SCHEMA_VERSION = 1


def graph_to_dict(graph: OpGraph, expressions: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """The whole annotated graph as plain data; ``read_graph`` takes it back.

    ``expressions``: operator id -> cost -> expression in the open sizes, added as ``symbolic``.
    """
    model: Model = graph.graph["model"]
    params: dict[str, Param] = {p.name: p for p in model.untaken_params}
    nodes = []
    for node_id, node, cost in operators(graph):
        params.update({param.name: param for _, param in node.params})
        entry = {"id": node_id, **_node(node), "cost": _cost(cost)}
        if expressions is not None:
            entry["symbolic"] = dict(expressions.get(node_id, {}))
        nodes.append(entry)
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "model": {
            "name": model.name, "source": model.source, "format": model.format,
            "inputs": {name: _spec(spec) for name, spec in model.inputs.items()},
            "outputs": list(model.outputs), "batch": model.batch, "batch_source": str(model.batch_source),
            "bindings": dict(model.bindings), "notes": list(model.notes), "folded": model.folded,
            "untaken_params": [p.name for p in model.untaken_params],
        },
        "params": {name: {**asdict(p), "spec": _spec(p.spec), "kind": str(p.kind)} for name, p in params.items()},
        "nodes": nodes,
        "edges": [
            {"from": a, "to": b, "value": data["value"], "slot": data["slot"], "tensor": _spec(data["tensor"])}
            for a, b, data in graph.edges(data=True)
        ],
    }  # fmt: skip


def read_graph(path: Path) -> Model:
    """The model of a saved graph; raises ``ModelFileError`` for anything else."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: not readable JSON ({error})") from error
    return model_from_dict(data, str(path))


def model_from_dict(data: Any, source: str) -> Model:
    """The model of ``graph_to_dict``'s plain data; raises ``ModelFileError`` for anything else."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ModelFileError(f"{source}: not a graphcost graph; write one with `graphcost graph MODEL --format json`")
    if data.get("schema_version") != SCHEMA_VERSION:
        raise ModelFileError(
            f"{source}: schema version {data.get('schema_version')}, this graphcost reads "
            f"{SCHEMA_VERSION}; write it anew"
        )
    try:
        return _model(data, source)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{source}: damaged graph file ({type(error).__name__}: {error})") from error


def to_graphml(graph: OpGraph) -> str:
    """GraphML with flat attributes, for Gephi, yEd and others."""
    import networkx as nx

    flat = nx.MultiDiGraph()
    for node_id, node, cost in operators(graph):
        numbers = _cost(cost) or {}
        flat.add_node(node_id, name=node.name, op_type=node.kind, module=node.module, repeat=node.repeat, **numbers)
    for a, b, data in graph.edges(data=True):
        spec = data["tensor"]
        flat.add_edge(a, b, value=data["value"], bytes=spec.size_bytes if spec is not None else -1)
    return "\n".join(nx.generate_graphml(flat))


def to_dot(graph: OpGraph) -> str:
    """Graphviz DOT; node labels are operator and name."""
    model: Model = graph.graph["model"]
    lines = [f"digraph {_quoted(model.name)} {{", "  node [shape=box];"]
    for node_id, node, cost in operators(graph):
        work = "no rule" if cost is None else f"{cost.flops:,} FLOP"
        label = "\\n".join(_escaped(part) for part in (node.kind, node.name, work))
        lines.append(f'  {_quoted(node_id)} [label="{label}"];')
    for a, b, data in graph.edges(data=True):
        spec = data["tensor"]
        label = "x".join(map(str, spec.shape)) if spec is not None else "?"
        lines.append(f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(label)}];")
    return "\n".join([*lines, "}"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _spec(spec: TensorSpec | None) -> dict[str, Any] | None:
    return None if spec is None else {"shape": list(spec.shape), "dtype": spec.dtype}


def _cost(cost: OpCost | None) -> dict[str, int] | None:
    return None if cost is None else asdict(cost)


def _node(node: OpNode) -> dict[str, Any]:
    return {
        "name": node.name, "op_type": node.op_type, "domain": node.domain, "module": node.module,
        "origin": node.origin, "repeat": node.repeat, "attrs": dict(node.attrs),
        "inputs": [_spec(spec) for spec in node.inputs], "outputs": [_spec(spec) for spec in node.outputs],
        "input_names": list(node.input_names), "output_names": list(node.output_names),
        "params": [[index, param.name] for index, param in node.params],
        "values": {str(index): list(value) for index, value in node.values.items()},
    }  # fmt: skip


def _read_spec(data: Any) -> TensorSpec | None:
    return None if data is None else TensorSpec(tuple(int(d) for d in data["shape"]), str(data["dtype"]))


def _read_required(data: Any) -> TensorSpec:
    return TensorSpec(tuple(int(d) for d in data["shape"]), str(data["dtype"]))


def _model(data: dict[str, Any], source: str) -> Model:
    head = data["model"]
    params = {
        name: Param(**{**entry, "spec": _read_required(entry["spec"]), "kind": ParamKind(entry["kind"])})
        for name, entry in data["params"].items()
    }
    nodes = tuple(_read_node(entry, params) for entry in data["nodes"])
    return Model(
        name=head["name"],
        source=source,
        format="graphcost",
        nodes=nodes,
        inputs={name: _read_required(spec) for name, spec in head["inputs"].items()},
        outputs=tuple(head["outputs"]),
        batch=head["batch"],
        batch_source=BatchSource(head["batch_source"]),
        bindings=head["bindings"],
        notes=tuple(head["notes"]),
        folded=int(head["folded"]),
        untaken_params=tuple(params[name] for name in head["untaken_params"]),
    )


def _read_node(entry: dict[str, Any], params: dict[str, Param]) -> OpNode:
    return OpNode(
        name=str(entry["name"]),
        op_type=str(entry["op_type"]),
        domain=str(entry["domain"]),
        inputs=tuple(_read_spec(spec) for spec in entry["inputs"]),
        outputs=tuple(_read_spec(spec) for spec in entry["outputs"]),
        attrs={key: tuple(v) if isinstance(v, list) else v for key, v in entry["attrs"].items()},
        input_names=tuple(entry["input_names"]),
        output_names=tuple(entry["output_names"]),
        params=tuple((int(index), params[name]) for index, name in entry["params"]),
        values={int(index): tuple(value) for index, value in entry["values"].items()},
        repeat=int(entry["repeat"]),
        module=str(entry["module"]),
        origin=str(entry["origin"]),
    )
