"""Parameters of a branch that is stored with the model but not run."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto

from graphcost.frontends.onnx.scope import Scope, definition
from graphcost.frontends.onnx.tensors import ExternalFiles, constant_value, sparse_value, tensor_value
from graphcost.frontends.onnx.values import Value
from graphcost.frontends.onnx.weights import folded_leaves, slot_params
from graphcost.ir import Param

_ANY_SIZE = frozenset({"Shape", "Size", "ConstantOfShape"})


def stored_params(graph: GraphProto, scope: Scope, owner: str, external: ExternalFiles) -> Iterator[Param]:
    """Parameters in ``graph`` and its own subgraphs, found without walking shapes."""
    known: dict[str, Value] = {}
    for tensor in graph.initializer:
        known[tensor.name] = tensor_value(tensor, tensor.name, f"{owner}/{tensor.name}", external)
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        known[name] = sparse_value(sparse, name, f"{owner}/{name}")
    inner = Scope(scope.path, owner, scope.opsets, scope, values=known)
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            name = node.output[0]
            known[name] = constant_value(node, name, f"{owner}/{name}", external)
            continue
        inputs = [_stored(inner, name) for name in node.input]
        if inputs and node.op_type not in _ANY_SIZE and all(value is not None for value in inputs):
            leaves = folded_leaves(node.op_type, tuple(inputs))
            for name in node.output:
                known[name] = Value(name, constant=True, stored=True, leaves=leaves)
            continue
        for index, value in enumerate(inputs):
            if value is not None:
                yield from slot_params(node.op_type, node.domain, index, value)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                branch = attribute.name.removesuffix("_branch")
                yield from stored_params(attribute.g, inner, f"{owner}/{definition(node)}.{branch}", external)


def _stored(scope: Scope, name: str) -> Value | None:
    """A stored constant called ``name``, here or outside; None for anything computed."""
    where: Scope | None = scope
    while where is not None and name:
        value = where.values.get(name)
        if value is not None:
            return value if value.stored and value.leaves else None
        where = where.outer
    return None
