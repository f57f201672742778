"""The op graph: a model's operators as an ordinary ``networkx.MultiDiGraph``.

Nodes carry ``op: OpNode`` and ``cost: OpCost | None`` (one step's forward cost, trips
included; None: no rule). Edges carry ``tensor: TensorSpec`` and ``value``, its name.
``graph.graph["model"]`` is the ``Model``. Nodes are inserted in execution order, which
is a stable topological order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from graphcost.ir import Model, OpCost, OpNode, Param, ParamKind
from graphcost.ops import find_rule, forward_cost

if TYPE_CHECKING:
    import networkx as nx

    OpGraph: TypeAlias = nx.MultiDiGraph


@dataclass(frozen=True, slots=True)
class UnknownOp:
    """An operator type that nobody counted: how often, and one of them by name."""

    op_type: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """Three answers: counted, free by decision, unknown. Operators, not trips."""

    counted: int
    free: int
    unknown: tuple[UnknownOp, ...]

    @property
    def unknown_count(self) -> int:
        """Operators without a cost."""
        return sum(entry.count for entry in self.unknown)

    @property
    def share(self) -> float:
        """Operators with an answer, of all; 1 for an empty graph."""
        total = self.counted + self.free + self.unknown_count
        return 1.0 if total == 0 else (self.counted + self.free) / total


@dataclass(frozen=True, slots=True)
class GraphTotals:
    """Forward totals of a graph: exact integers for the batch it was loaded with."""

    ops: int
    cost: OpCost
    params: int
    param_bytes: int
    buffers: int
    buffer_bytes: int
    coverage: Coverage

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the contractions: half their FLOPs."""
        return self.cost.matmul_flops // 2


def build_graph(model: Model) -> OpGraph:
    """A model's operators with costs, connected by the values they pass.

    Time and memory are linear in operators and connections.

    >>> from graphcost.models_zoo import build
    >>> graph = build_graph(build("mlp", batch=1))
    >>> next(iter(graph.nodes(data=True)))[1]["op"].op_type
    'Gemm'
    """
    import networkx as nx  # 0.2 s, and nothing before this line needs it

    graph = nx.MultiDiGraph()
    graph.graph["model"] = model
    producers: dict[str, str] = {}
    known: dict[Hashable, OpCost | None] = {}
    for node_id, node in zip(stable_ids(model.nodes), model.nodes, strict=True):
        graph.add_node(node_id, op=node, cost=_known_cost(node, known))
        for index, (name, spec) in enumerate(zip(node.input_names, node.inputs, strict=False)):
            producer = producers.get(name)
            if producer is not None:
                graph.add_edge(producer, node_id, tensor=spec, value=name, slot=index)
        for name in node.output_names:
            if name:
                producers[name] = node_id
    return graph


def _known_cost(node: OpNode, known: dict[Hashable, OpCost | None]) -> OpCost | None:
    """``step_cost``, asked once for operators that look the same to a rule (deep networks repeat their layers)."""
    key = cost_key(node)
    if key is None:
        return step_cost(node)
    if key not in known:
        known[key] = step_cost(node)
    return known[key]


def cost_key(node: OpNode) -> Hashable | None:
    """What a rule sees of ``node``: equal keys, equal costs. None where that is more than plain shapes and numbers.

    Specs go by identity, so a key is good while the model that they belong to is held.
    """
    if node.values or None in node.inputs or None in node.outputs:
        return None
    try:
        attrs = frozenset(node.attrs.items())
    except TypeError:  # a list or the like
        return None
    return (node.op_type, node.domain, node.repeat, attrs, *map(id, node.inputs), None, *map(id, node.outputs))


def step_cost(node: OpNode) -> OpCost | None:
    """The operator's forward cost over one step (all trips), or None without a rule."""
    cost = forward_cost(node)
    if cost is None or node.repeat == 1:
        return cost
    return cost * node.repeat


def operators(graph: OpGraph) -> Iterator[tuple[str, OpNode, OpCost | None]]:
    """(id, operator, cost) in execution order."""
    for node_id, data in graph.nodes(data=True):
        yield node_id, data["op"], data["cost"]


def stable_ids(nodes: tuple[OpNode, ...]) -> list[str]:
    """Ids from structure, not from exporter's names or sizes: they survive a re-export.

    ``Conv-3f9a1c02`` hashes an operator's type, attributes and parameter shapes with those
    of its neighbours; equal ones are numbered in execution order.
    """
    labels = [_label(node) for node in nodes]
    digests: dict[str, str] = {}
    makers = {name: i for i, node in enumerate(nodes) for name in node.output_names if name}
    readers: list[list[int]] = [[] for _ in nodes]
    writers: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for name in node.input_names:
            maker = makers.get(name)
            if maker is not None:
                readers[maker].append(index)
                writers[index].append(maker)
    seen: Counter[str] = Counter()
    ids: list[str] = []
    for index, node in enumerate(nodes):
        around = [labels[i] for i in writers[index]] + [">"] + sorted(labels[i] for i in readers[index][:8])
        base = _digest(node.op_type, "|".join([labels[index], *around]), digests)
        seen[base] += 1
        ids.append(base if seen[base] == 1 else f"{base}.{seen[base]}")
    return ids


def _digest(op_type: str, text: str, known: dict[str, str]) -> str:
    base = known.get(text)
    if base is None:
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
        base = known[text] = f"{op_type}-{digest}"
    return base


_LABEL_LENGTH = 256
"""Longer labels (long attributes) are hashed first: each goes into those of all its neighbours."""


def _label(node: OpNode) -> str:
    attrs = ",".join(f"{key}={node.attrs[key]}" for key in sorted(node.attrs))
    params = ",".join(f"{index}:{param.spec.shape}" for index, param in node.params)
    label = f"{node.kind}({attrs};{params};{len(node.inputs)}>{len(node.outputs)})"
    if len(label) <= _LABEL_LENGTH:
        return label
    return blake2b(label.encode("utf-8", "replace"), digest_size=16).hexdigest()


def parameters(graph: OpGraph) -> dict[str, Param]:
    """Every stored parameter and buffer once, by name, in order of first use."""
    model: Model = graph.graph["model"]
    return _parameters((node for _, node, _ in operators(graph)), model)


def _parameters(nodes: Iterable[OpNode], model: Model) -> dict[str, Param]:
    found: dict[str, Param] = {}
    for node in nodes:
        for _, param in node.params:
            found.setdefault(param.name, param)
    for param in model.untaken_params:
        found.setdefault(param.name, param)
    return found


def totals(graph: OpGraph) -> GraphTotals:
    """Forward totals; a tied weight counts once."""
    return _totals(((node, cost) for _, node, cost in operators(graph)), parameters(graph))


def totals_of(model: Model) -> GraphTotals:
    """As ``totals`` of the model's graph, which is not built: importing networkx alone takes 0.15 s."""
    known: dict[Hashable, OpCost | None] = {}
    return _totals(((node, _known_cost(node, known)) for node in model.nodes), _parameters(model.nodes, model))


def _totals(costs: Iterable[tuple[OpNode, OpCost | None]], stored: Mapping[str, Param]) -> GraphTotals:
    ops = matmul = elementwise = read = write = 0
    counted = free = 0
    unknown: dict[str, list[str]] = {}
    for node, cost in costs:
        ops += 1
        if cost is None:
            unknown.setdefault(node.kind, []).append(node.name)
            continue
        rule = find_rule(node)
        if rule is not None and rule.is_free:
            free += 1
        else:
            counted += 1
        matmul += cost.matmul_flops
        elementwise += cost.elementwise_flops
        read += cost.read_bytes
        write += cost.write_bytes
    weights = [param for param in stored.values() if param.kind is ParamKind.WEIGHT]
    buffers = [param for param in stored.values() if param.kind is ParamKind.BUFFER]
    entries = tuple(UnknownOp(kind, len(names), names[0]) for kind, names in sorted(unknown.items()))
    return GraphTotals(
        ops=ops,
        cost=OpCost(matmul, elementwise, read, write),
        params=sum(param.numel for param in weights),
        param_bytes=sum(param.stored_bytes for param in weights),
        buffers=sum(param.numel for param in buffers),
        buffer_bytes=sum(param.stored_bytes for param in buffers),
        coverage=Coverage(counted, free, entries),
    )


def branch_weight(nodes: Sequence[OpNode]) -> tuple[int, int]:
    """How dear a list of operators is: (matmul FLOPs, other FLOPs and bytes)."""
    matmul = other = 0
    for node in nodes:
        cost = step_cost(node)
        if cost is not None:
            matmul += cost.matmul_flops
            other += cost.elementwise_flops + cost.bytes
    return matmul, other
