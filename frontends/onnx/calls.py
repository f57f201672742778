"""How large a graph becomes with all function calls opened: told before it is walked."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, ModelProto, NodeProto

from graphcost.errors import ModelFileError
from graphcost.frontends.onnx.emit import normal_domain

Key = tuple[str, str, str]


def check_calls(model: ModelProto, limit: int) -> None:
    """Raise ``ModelFileError`` where calls expand to over ``limit`` operators.

    A few functions that call each other several times make a small file exponentially
    large; counting is linear in the file. Functions that call themselves are left to the
    walk, which stops at its depth.
    """
    functions: dict[Key, FunctionProto] = {(normal_domain(f.domain), f.name, f.overload): f for f in model.functions}
    if not functions:
        return
    called = {key: _called(function.node, functions) for key, function in functions.items()}
    roots = _called(model.graph.node, functions)
    sizes: dict[Key, int] = {}
    for key in _callees_first(roots[1], called):
        own, calls = called[key]
        sizes[key] = own + sum(sizes.get(callee, 0) for callee in calls)
    total = roots[0] + sum(sizes[callee] for callee in roots[1])
    if total > limit:
        raise ModelFileError(f"the graph expands to more than {limit} operators; it is refused")


def _called(nodes: Iterable[NodeProto], functions: dict[Key, FunctionProto]) -> tuple[int, list[Key]]:
    """(operators in ``nodes`` and their subgraphs, the functions they call, repeated calls repeated)."""
    count = 0
    calls: list[Key] = []
    stack = list(nodes)
    while stack:
        node = stack.pop()
        count += 1
        key = (normal_domain(node.domain), node.op_type, node.overload)
        if key in functions:
            calls.append(key)
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                stack.extend(graph.node)
    return count, calls


def _callees_first(roots: Iterable[Key], called: dict[Key, tuple[int, list[Key]]]) -> list[Key]:
    """Functions reached from ``roots``, each after those it calls (of a recursion, after some)."""
    done: dict[Key, None] = {}
    for root in roots:
        path: dict[Key, None] = {}
        stack = [(root, False)]
        while stack:
            key, left = stack.pop()
            if left:
                path.pop(key)
                done[key] = None
            elif key not in done and key not in path:
                path[key] = None
                stack.append((key, True))
                stack.extend((callee, False) for callee in dict.fromkeys(called[key][1]))
    return list(done)
