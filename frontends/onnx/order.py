"""Order and liveness of the operators of one graph, by value names alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from onnx import GraphProto, NodeProto

from graphcost.errors import ModelFileError


def reads_of(node: NodeProto) -> Iterator[str]:
    """Names that ``node`` reads, those captured by its subgraphs included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from _captured(attribute.g)
        for graph in attribute.graphs:
            yield from _captured(graph)


def _captured(graph: GraphProto) -> Iterator[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {sparse.values.name for sparse in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in reads_of(node) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)


def live_in_order(
    nodes: Sequence[NodeProto], outputs: Iterable[str], where: str, given: frozenset[str] = frozenset()
) -> tuple[list[NodeProto], int, bool]:
    """(nodes that reach an output, in a valid order; how many do not; whether they were reordered).

    File order is kept where it is valid, else ties go by file position. ``given`` are the
    names of inputs and stored tensors. Raises ``ModelFileError`` for a value made twice
    and for cycles.
    """
    maker: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and (name in given or maker.setdefault(name, index) != index):
                raise ModelFileError(f"{where}: value {name!r} is produced twice; names must be unique")
    reads = [[maker[name] for name in reads_of(node) if name in maker] for node in nodes]
    live = _reaching(reads, [maker[name] for name in outputs if name in maker])
    ordered = all(source < index for index in live for source in reads[index])
    sequence = sorted(live) if ordered else _sorted(live, reads, nodes, where)
    return [nodes[i] for i in sequence], len(nodes) - len(live), not ordered


def _reaching(reads: list[list[int]], roots: list[int]) -> set[int]:
    live = set(roots)
    stack = list(roots)
    while stack:
        for source in reads[stack.pop()]:
            if source not in live:
                live.add(source)
                stack.append(source)
    return live


def _sorted(live: set[int], reads: list[list[int]], nodes: Sequence[NodeProto], where: str) -> list[int]:
    """Kahn's algorithm, earliest file position first among those that became ready together."""
    waiting = {index: len(set(reads[index])) for index in live}
    readers: dict[int, list[int]] = {}
    for index in sorted(live):
        for source in set(reads[index]):
            readers.setdefault(source, []).append(index)
    ready = deque(index for index in sorted(live) if waiting[index] == 0)
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for reader in readers.get(index, ()):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    if len(order) < len(live):
        stuck = nodes[min(index for index in live if waiting[index] > 0)]
        raise ModelFileError(
            f"{where}: operators form a cycle through {stuck.name or stuck.op_type!r}; a graph must be acyclic"
        )
    return order
