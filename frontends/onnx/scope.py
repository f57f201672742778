"""Where names are looked up while walking: a graph, a subgraph, a function's body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnx import AttributeProto, NodeProto, TypeProto

from graphcost.errors import ModelFileError
from graphcost.frontends.onnx.values import Value


def definition(node: NodeProto) -> str:
    """What tells ``node`` from others of its graph: its first output, for names may repeat or be empty."""
    return next((name for name in node.output if name), node.name or node.op_type)


@dataclass(slots=True)
class Scope:
    """One graph being walked.

    ``path`` prefixes the names of this instance; ``owner`` names the definition, so that
    a function called twice has one set of stored tensors. ``repeat`` is how often one
    step runs it. ``attributes`` are those of the enclosing function call.
    """

    path: str
    owner: str
    opsets: Mapping[str, int]
    outer: Scope | None = None
    repeat: int = 1
    depth: int = 0
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    declared: Mapping[str, TypeProto] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """Identity of the stored tensor ``name`` of this definition, whatever the instance."""
        return f"{self.owner}/{name}" if self.owner else name

    def find(self, name: str, reader: str) -> Value:
        """The value called ``name`` here or outside; raises ``ModelFileError`` where nothing makes it."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.values.get(name)
            if found is not None:
                return found
            scope = scope.outer
        raise ModelFileError(
            f"{reader} reads {name!r}, which no operator, input or initializer provides; the file is "
            "damaged or truncated"
        )

    def resolve(self, node: NodeProto) -> NodeProto:
        """``node`` with references to the function call's attributes replaced by their values."""
        if not any(attribute.ref_attr_name for attribute in node.attribute):
            return node
        resolved = NodeProto()
        resolved.CopyFrom(node)
        del resolved.attribute[:]
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                resolved.attribute.append(attribute)
                continue
            given = self.attributes.get(attribute.ref_attr_name)
            if given is not None:  # an attribute the caller left out stays at the operator's default
                made = AttributeProto()
                made.CopyFrom(given)
                made.name = attribute.name
                resolved.attribute.append(made)
        return resolved
