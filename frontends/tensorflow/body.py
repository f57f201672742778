"""A graph or library function as nodes that refer to each other: references, liveness, order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphcost.errors import ModelFileError
from graphcost.frontends.tensorflow.framework import op_definition

NodeDef = Any
"""``tensorflow.core.framework.node_def_pb2.NodeDef``: TensorFlow's messages carry no types."""

FORWARDS = frozenset({"Identity", "StopGradient", "Snapshot", "PreventGradient", "CheckNumerics", "EnsureShape"})
"""Operators whose result is their first input."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Output ``index`` of ``node``, or formal argument ``node`` of a function."""

    node: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """Nodes by name with the arguments and results of the function they make up.

    The main graph has no ``arguments``. References read ``node:1`` in graphs and
    ``node:output:1`` in functions.
    """

    name: str
    nodes: Mapping[str, NodeDef]
    arguments: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    argument_dtypes: tuple[int, ...] = ()
    _formals: frozenset[str] = field(default=frozenset())
    derived: dict[str, Any] = field(default_factory=dict, compare=False)
    """What was found out about the nodes once (frames of TF 1 loops)."""

    @classmethod
    def of_graph(cls, graph_def: Any, results: Sequence[str]) -> Body:
        """The main graph."""
        return cls("", _by_name(graph_def.node, "the graph"), (), tuple(results))

    @classmethod
    def of_function(cls, function: Any) -> Body:
        """A library function (``FunctionDef``)."""
        name = function.signature.name
        arguments = tuple(arg.name for arg in function.signature.input_arg)
        missing = [arg.name for arg in function.signature.output_arg if arg.name not in function.ret]
        if missing:
            raise ModelFileError(f"function {name!r} states no value for its result {missing[0]!r}")
        results = tuple(function.ret[arg.name] for arg in function.signature.output_arg)
        dtypes = tuple(arg.type for arg in function.signature.input_arg)
        return cls(name, _by_name(function.node_def, name), arguments, results, dtypes, frozenset(arguments))

    def ref(self, text: str) -> Ref:
        """What a reference points to; raises ``ModelFileError`` for one that leads nowhere."""
        head, *rest = text.split(":")
        if head in self._formals and head not in self.nodes:
            return Ref(head)
        node = self.nodes.get(head)
        if node is None:
            where = f"function {self.name!r}" if self.name else "the graph"
            raise ModelFileError(f"{where} refers to {head!r}, which is not in it; is the file whole?")
        if not rest:
            return Ref(head)
        if len(rest) == 1 and rest[0].isdigit():
            return Ref(head, int(rest[0]))
        index = int(rest[1]) if len(rest) > 1 and rest[1].isdigit() else 0
        return Ref(head, output_offset(node, rest[0]) + index)

    def inputs(self, node: NodeDef) -> list[Ref]:
        """Data inputs of a node; control inputs carry no data."""
        return [self.ref(text) for text in node.input if not text.startswith("^")]

    def source(self, text: str) -> Ref:
        """``text`` followed back through operators that forward their input."""
        ref, passed = self.ref(text), set[str]()
        while ref.node in self.nodes and self.nodes[ref.node].op in FORWARDS:
            if ref.node in passed:
                raise ModelFileError(f"node {ref.node!r} depends on itself; a graph must have no circles")
            passed.add(ref.node)
            ref = self.inputs(self.nodes[ref.node])[0]
        return ref

    def order(
        self,
        targets: Iterable[str],
        given: Callable[[str], bool] = lambda name: False,
        needs: Callable[[NodeDef], list[Ref]] | None = None,
    ) -> list[NodeDef]:
        """Nodes that ``targets`` depend on, inputs first; ``given`` ones are not entered.

        Time is linear in nodes and references. Raises ``ModelFileError`` for a circle.
        """
        needs = needs or self.inputs
        done: set[str] = set()
        path: dict[str, Any] = {}
        found: list[NodeDef] = []
        for target in targets:
            stack = [self.ref(target).node]
            while stack:
                name = stack[-1]
                node = self.nodes.get(name)
                if node is None or name in done or given(name):
                    stack.pop()
                    continue
                pending = path.get(name)
                if pending is None:
                    pending = path[name] = iter(needs(node))
                step = next(
                    (r.node for r in pending if r.node not in done and r.node in self.nodes and not given(r.node)),
                    None,
                )
                if step is None:
                    stack.pop()
                    del path[name]
                    done.add(name)
                    found.append(node)
                elif step in path:
                    raise ModelFileError(f"node {step!r} depends on itself; a graph must have no circles")
                else:
                    stack.append(step)
        return found

    def arguments_behind(self, text: str) -> set[str]:
        """Formal arguments that ``text`` depends on, by any path of data."""
        start = self.ref(text).node
        if start in self._formals and start not in self.nodes:
            return {start}
        return {ref.node for node in self.order([text]) for ref in self.inputs(node) if ref.node in self._formals}


def output_offset(node: NodeDef, output: str) -> int:
    """Position of a named output among all outputs of a node."""
    definition = op_definition(node.op)
    if definition is None:
        return 0
    offset = 0
    for arg in definition.output_arg:
        if arg.name == output:
            return offset
        offset += arg_length(node, arg)
    raise ModelFileError(f"{node.name} ({node.op}): the operator has no output {output!r}")


def arg_length(node: NodeDef, arg: Any) -> int:
    """How many tensors an argument of an ``OpDef`` stands for at this node."""
    if arg.number_attr:
        return int(node.attr[arg.number_attr].i)
    if arg.type_list_attr:
        return len(node.attr[arg.type_list_attr].list.type)
    return 1


def _by_name(nodes: Iterable[NodeDef], where: str) -> dict[str, NodeDef]:
    found: dict[str, NodeDef] = {}
    for node in nodes:
        if node.name in found:
            raise ModelFileError(f"{where} has two nodes named {node.name!r}")
        _check_inputs(node)
        found[node.name] = node
    return found


def _check_inputs(node: NodeDef) -> None:
    definition = op_definition(node.op)
    if definition is None:
        return
    needed = sum(arg_length(node, arg) for arg in definition.input_arg)
    given = sum(not text.startswith("^") for text in node.input)
    if needed != given:
        raise ModelFileError(f"{node.name} ({node.op}): the operator takes {needed} inputs, {given} are given")
