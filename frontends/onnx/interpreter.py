"""Walk an ONNX graph with every size bound: shapes forward, small values computed, calls opened.

The walk turns the file's graph, functions and control flow into one flat list of
operators. Operators that see only constants are folded: they run once, not every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from graphcost.errors import ModelFileError
from graphcost.frontends.onnx import control, sequences
from graphcost.frontends.onnx.content import with_content
from graphcost.frontends.onnx.declared import bound_spec, declared, with_declared
from graphcost.frontends.onnx.emit import make_node, normal_domain
from graphcost.frontends.onnx.order import live_in_order
from graphcost.frontends.onnx.rebatch import adapted
from graphcost.frontends.onnx.scope import Scope, definition
from graphcost.frontends.onnx.shapes import Inferred, ShapeInference
from graphcost.frontends.onnx.tensors import (
    ExternalFiles,
    constant_value,
    empty_content,
    given_content,
    sparse_value,
    tensor_value,
)
from graphcost.frontends.onnx.untaken import stored_params
from graphcost.frontends.onnx.upper import upper_bound
from graphcost.frontends.onnx.values import ABSENT, Value
from graphcost.ir import OpNode, Param, TensorSpec

CostOf = Callable[[Sequence[OpNode]], tuple[int, int]]
"""Weighs a branch: (matmul FLOPs, all other work). Handed in from above: frontends know no rules."""

MAX_DEPTH = 64
"""Nesting of calls and subgraphs; deeper is recursion or an attack."""

EXPANDED_OPS = 500_000
"""Operators that opened calls and loops may add to the file's own; beyond lies an attack."""

_CONTROL = {"If": control.run_if, "Loop": control.run_loop, "Scan": control.run_scan}

# How many of its first two inputs an operator needs that is opened here, and not checked by a library.
_NEEDED = {
    "If": 1, "SequenceAt": 2, "SequenceInsert": 2, "SequenceErase": 1, "SequenceLength": 1, "SplitToSequence": 1,
    "ConcatFromSequence": 1, "SequenceMap": 1, "SequenceConstruct": 1, "Identity": 1, "OptionalGetElement": 1,
}  # fmt: skip


def op_limit(model: ModelProto) -> int:
    """Operators that a walk of ``model`` may take."""
    return EXPANDED_OPS + 4 * len(model.graph.node)


class Interpreter:
    """One walk over one model. ``nodes`` is the result, in execution order."""

    def __init__(
        self,
        model: ModelProto,
        external: ExternalFiles,
        cost_of: CostOf,
        dims: Mapping[str, int],
        input_values: Mapping[str, tuple[float, ...]],
        rebatched: tuple[int, int] | None = None,
    ) -> None:
        self.nodes: list[OpNode] = []
        self.notes: dict[str, None] = {}
        self.folded = 0
        self.untaken: dict[str, Param] = {}
        self.cost_of = cost_of
        self._model = model
        self._external = external
        self._dims = dims
        self._input_values = input_values
        self._rebatched = rebatched
        self._shapes = ShapeInference(model.ir_version)
        self._functions = {(normal_domain(f.domain), f.name, f.overload): f for f in model.functions}
        self._paths: dict[str, int] = {}
        self._steps = 0
        self._limit = op_limit(model)
        self._inputs: tuple[str, ...] = ()

    def run(self, inputs: Mapping[str, TensorSpec]) -> list[Value]:
        """Walk the main graph; returns the values of its outputs."""
        graph = self._model.graph
        opsets = {normal_domain(o.domain): o.version for o in self._model.opset_import}
        scope = Scope("", "", opsets or {"": 1}, declared=declared(graph))
        self._inputs = tuple(inputs)
        for name, spec in inputs.items():
            scope.values[name] = self._input(name, spec)
        stored = {tensor.name for tensor in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
        for info in graph.input:
            if info.name not in stored and info.name not in inputs:  # a sequence or map: nothing is known of it
                scope.values[info.name] = Value(info.name)
        return self._walk(graph, scope)

    # -- what control flow uses

    def subgraph(
        self, graph: GraphProto, formals: Sequence[Value], scope: Scope, node: NodeProto, label: str, repeat: int = 1
    ) -> list[Value]:
        """Walk a subgraph of ``node`` with ``formals`` as its inputs."""
        name = self._unique(f"{scope.path}{_label(node)}.{label}")
        inner = Scope(
            f"{name}/", f"{scope.owner}/{definition(node)}.{label.split('.')[0]}", scope.opsets, scope,
            scope.repeat * repeat, scope.depth + 1, scope.attributes, declared(graph),
        )  # fmt: skip
        if len(formals) < len(graph.input):
            raise ModelFileError(
                f"{_label(node)} ({node.op_type}): its body takes {len(graph.input)} inputs, {len(formals)} are given"
            )
        for info, value in zip(graph.input, formals, strict=False):
            named = value if value.name else replace(value, name=inner.path + info.name)
            inner.values[info.name] = with_declared(named, info.type)
        return self._walk(graph, inner)

    @contextmanager
    def collecting(self) -> Iterator[list[OpNode]]:
        """Collect emitted operators apart, to be judged before they count."""
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def emit_all(self, nodes: Sequence[OpNode]) -> None:
        """Count operators collected before."""
        self.nodes.extend(nodes)

    def keep_params(self, nodes: Sequence[OpNode]) -> None:
        """Parameters of a branch that is not taken are still stored with the model."""
        for node in nodes:
            self.untaken.update({param.name: param for _, param in node.params})

    def keep_params_of(self, graph: GraphProto, scope: Scope, owner: str) -> None:
        """As ``keep_params``, of a branch that is not walked: it need not fit these sizes."""
        for param in stored_params(graph, scope, owner, self._external):
            self.untaken[param.name] = param

    def note(self, text: str) -> None:
        """Something a reader of the result must know, said once."""
        self.notes[text] = None

    def value_option(self, name: str) -> tuple[float, ...] | None:
        """What the user gave for ``name`` with --input-value."""
        return self._input_values.get(name) if name else None

    def input_behind(self, value: Value) -> str | None:
        """The graph input that ``value`` is, if it is one."""
        return value.name if value.name in self._inputs else None

    # -- the walk

    def _walk(self, graph: GraphProto, scope: Scope) -> list[Value]:
        if scope.depth > MAX_DEPTH:
            raise ModelFileError(f"{scope.path}: calls nest deeper than {MAX_DEPTH}; does a function call itself?")
        for tensor in graph.initializer:
            key = scope.key(tensor.name)
            scope.values.setdefault(tensor.name, tensor_value(tensor, scope.path + tensor.name, key, self._external))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            key = scope.key(name)
            scope.values.setdefault(name, sparse_value(sparse, scope.path + name, key))
        outputs = [info.name for info in graph.output]
        self._walk_nodes(graph.node, outputs, scope, graph.name or "graph")
        return [scope.find(name, f"output of {graph.name or 'the graph'}") for name in outputs]

    def _walk_nodes(self, nodes: Sequence[NodeProto], outputs: Sequence[str], scope: Scope, where: str) -> None:
        live, dead, reordered = live_in_order(nodes, outputs, where, frozenset(scope.values))
        if dead and scope.depth == 0:
            self.note(f"{dead} operators reach no output and are not counted")
        if reordered:
            self.note(f"operators of {where!r} are not in execution order; they were sorted")
        for node in live:
            self._steps += 1
            if self._steps > self._limit:
                raise ModelFileError(f"the graph expands to more than {self._limit} operators; it is refused")
            self._step(scope.resolve(node), scope)

    def _step(self, node: NodeProto, scope: Scope) -> None:
        domain = normal_domain(node.domain)
        reader = node.name or node.op_type
        found = [scope.find(name, reader) if name else None for name in node.input]
        inputs = [None if value is ABSENT else value for value in found]
        function = self._functions.get((domain, node.op_type, node.overload))
        results: Sequence[Value]
        if function is not None:
            results = self._call(function, node, inputs, scope)
        elif domain == "" and sum(v is not None for v in inputs[:2]) < _NEEDED.get(node.op_type, 0):
            raise ModelFileError(f"{_label(node)} ({node.op_type}): an input that the operator needs is missing")
        elif domain == "" and node.op_type in _CONTROL:
            results = _CONTROL[node.op_type](self, node, inputs, scope)
        elif domain == "" and node.op_type == "Constant":
            name = scope.path + node.output[0]
            key = scope.key(node.output[0])
            results = [constant_value(node, name, key, self._external)]
            self.folded += 1
        elif domain == "" and node.op_type in sequences.HANDLERS:
            results = sequences.HANDLERS[node.op_type](self, node, inputs, scope)
        else:
            results = self.operator(node, domain, inputs, scope)
        for name, value in zip(node.output, results, strict=False):
            if name:
                scope.values[name] = value

    def operator(self, node: NodeProto, domain: str, inputs: list[Value | None], scope: Scope) -> list[Value]:
        """Shapes, values and constness of one ordinary operator; emitted unless folded."""
        inputs = self._adapted(node, inputs)
        inferred = self._shapes.infer(node, domain, scope.opsets, inputs)
        specs = [
            self._settle(name, answer, node, domain, inputs, scope) if name else (None, None)
            for name, answer in zip(node.output, inferred, strict=True)
        ]
        results = [
            Value(scope.path + name if name else "", spec, dtype)
            for name, (spec, dtype) in zip(node.output, specs, strict=True)
        ]
        results = with_content(node, domain, inputs, results, scope)
        if results and all(value.constant for value in results if value.name):
            self.folded += scope.repeat > 0
        else:
            self.emit(node, inputs, results, scope)
        return results

    def emit(self, node: NodeProto, inputs: list[Value | None], results: list[Value], scope: Scope) -> None:
        """Count an operator with settled shapes."""
        self.nodes.append(make_node(node, normal_domain(node.domain), inputs, results, scope))

    def _settle(
        self, name: str, answer: Inferred, node: NodeProto, domain: str, inputs: list[Value | None], scope: Scope
    ) -> Inferred:
        """An inferred shape, else what the file declares, else an upper bound that is said."""
        spec, dtype = answer
        if spec is not None:
            return answer
        proto = scope.declared.get(name)
        if proto is not None:
            spec = bound_spec(proto, self._dims)
            if spec is not None:
                return spec, spec.dtype
        bound = upper_bound(node.op_type, list(node.output).index(name), inputs) if domain == "" else None
        if bound is not None:
            self.note(f"{node.op_type}: its output size depends on data; the largest possible is counted")
            return bound, bound.dtype
        return None, dtype

    def _adapted(self, node: NodeProto, inputs: list[Value | None]) -> list[Value | None]:
        """Inputs as the operator's definition has them."""
        if node.op_type == "Range":  # exporters and onnx's own functions also give it one-element vectors
            return [_as_scalar(value) for value in inputs]
        return inputs if self._rebatched is None else adapted(node, inputs, *self._rebatched)

    # -- functions and inputs

    def _call(
        self, function: FunctionProto, node: NodeProto, inputs: list[Value | None], scope: Scope
    ) -> list[Value]:
        label = node.name or function.name
        path = self._unique(scope.path + label)
        attributes = {a.name: a for a in function.attribute_proto} | {a.name: a for a in node.attribute}
        owner = ".".join(part for part in (function.domain, function.name, function.overload) if part)
        opsets = dict(scope.opsets) | {normal_domain(o.domain): o.version for o in function.opset_import}
        inner = Scope(
            f"{path}/", owner, opsets, None, scope.repeat, scope.depth + 1, attributes,
            {info.name: info.type for info in function.value_info},
        )  # fmt: skip
        if inner.depth > MAX_DEPTH:
            raise ModelFileError(
                f"{path}: calls nest deeper than {MAX_DEPTH}; does function {function.name!r} call itself?"
            )
        for index, name in enumerate(function.input):
            value = inputs[index] if index < len(inputs) else None
            inner.values[name] = value if value is not None else ABSENT
        self._walk_nodes(function.node, list(function.output), inner, f"function {function.name}")
        return [inner.find(name, f"output of function {function.name}") for name in function.output]

    def _input(self, name: str, spec: TensorSpec) -> Value:
        given = self._input_values.get(name)
        data = empty_content(spec) if given is None else given_content(name, spec, given)
        return Value(name, spec, spec.dtype, data)

    def _unique(self, path: str) -> str:
        count = self._paths.get(path, 0)
        self._paths[path] = count + 1
        return path if count == 0 else f"{path}#{count + 1}"


def _as_scalar(value: Value | None) -> Value | None:
    if value is None or value.spec is None or value.spec.shape != (1,):
        return value
    data = None if value.data is None else value.data.reshape(())
    return replace(value, spec=TensorSpec((), value.spec.dtype), data=data)


def _label(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), node.op_type)
