"""Walk a TensorFlow graph with every size bound: calls opened, shapes forward, small values computed.

The walk turns the graph, its library functions and control flow into one flat list of
operators with ONNX names. Operators that see only constants are folded: they run once,
not every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from graphcost.errors import ModelFileError
from graphcost.frontends.tensorflow.body import FORWARDS, Body, NodeDef, Ref
from graphcost.frontends.tensorflow.content import with_content
from graphcost.frontends.tensorflow.emit import HANDLERS, Op, emit_unknown
from graphcost.frontends.tensorflow.framework import dtype_name
from graphcost.frontends.tensorflow.infer import Scratch, spec_of
from graphcost.frontends.tensorflow.rebatch import adapted
from graphcost.frontends.tensorflow.values import Array, Leaf, Value, Variable
from graphcost.ir import OpNode, Param, TensorSpec

CostOf = Callable[[Sequence[OpNode]], tuple[int, int]]
"""Weighs a branch: (matmul FLOPs, all other work). Handed in from above: frontends know no rules."""

Opener = Callable[["Walk", NodeDef, list[Value], "Scope"], Sequence[Value]]

OPENERS: dict[str, Opener] = {}
"""Operators that the walk itself must open: sources, calls, control flow, lists. Filled by the modules beside."""

MAX_DEPTH = 64
"""Nesting of calls; deeper is recursion."""

MAX_OPS = 2_000_000
"""Operators after opening all calls; a graph that expands further is refused."""


def opens(*op_types: str) -> Callable[[Opener], Opener]:
    """Register an opener for TensorFlow operator names."""

    def register(opener: Opener) -> Opener:
        for op_type in op_types:
            if op_type in OPENERS:
                raise ValueError(f"TensorFlow operator {op_type} is opened twice")
            OPENERS[op_type] = opener
        return opener

    return register


@dataclass(slots=True)
class Scope:
    """Values of one body being walked. ``owner`` names stored tensors: two calls share a function's."""

    body: Body
    path: str = ""
    owner: str = ""
    repeat: int = 1
    depth: int = 0
    values: dict[str, list[Value]] = field(default_factory=dict)

    def find(self, ref: Ref) -> Value:
        """The value that ``ref`` points to; an unknown one for a result that its operator does not have."""
        listed = self.values.get(ref.node, [])
        if ref.index < len(listed):
            return listed[ref.index]
        return Value(f"{self.path}{ref.node}:{ref.index}")


class Walk:
    """One walk over one model. ``nodes`` is the result, in execution order."""

    def __init__(
        self,
        functions: Mapping[str, Any],
        cost_of: CostOf,
        input_values: Mapping[str, tuple[float, ...]],
        variables: Mapping[str, Variable],
        rebatched: tuple[int, int] | None = None,
    ) -> None:
        self.nodes: list[OpNode] = []
        self.notes: dict[str, None] = {}
        self.folded = 0
        self.untaken: dict[str, Param] = {}
        self.cost_of = cost_of
        self.scratch = Scratch()
        self.variables = variables
        self.input_values = input_values
        self.used_values: set[str] = set()
        self.inputs: frozenset[str] = frozenset()
        self._main = Scope(Body("", {}))
        self.rebatched = rebatched
        self._functions = functions
        self._bodies: dict[str, Body] = {}
        self._paths: dict[str, int] = {}
        self._steps = 0

    # -- what openers use

    def run(self, body: Body, inputs: Mapping[str, list[Value]]) -> list[Value]:
        """Walk the main graph with ``inputs`` (results by node name); returns the values of its results."""
        scope = self._main = Scope(body)
        self.inputs = frozenset(value.name for results in inputs.values() for value in results)
        scope.values.update(inputs)
        return self.results(scope, body.results)

    def beyond(self, wanted: Sequence[str]) -> list[OpNode]:
        """Operators that ``wanted`` of the main graph needs after ``run`` and beyond it. They are not counted."""
        with self.trial() as nodes:
            self.results(self._main, wanted)
        return nodes

    def results(self, scope: Scope, wanted: Sequence[str]) -> list[Value]:
        """Walk whatever of the scope's body ``wanted`` needs and has not been walked; their values."""
        from graphcost.frontends.tensorflow.frames import frame_needs

        if scope.depth > MAX_DEPTH:
            raise ModelFileError(f"{scope.path}: calls nest deeper than {MAX_DEPTH}; does a function call itself?")
        needs = frame_needs(scope.body)
        for node in scope.body.order(wanted, scope.values.__contains__, needs):
            if node.name in scope.values:
                continue  # opened with an operator before it
            self._steps += 1
            if self._steps > MAX_OPS:
                raise ModelFileError(f"the graph expands to more than {MAX_OPS} operators; it is refused")
            scope.values[node.name] = list(self._step(node, scope))
        return [scope.find(scope.body.ref(text)) for text in wanted]

    def function(self, name: str, by: NodeDef) -> Body:
        """A library function; raises ``ModelFileError`` where the file lacks it."""
        found = self._bodies.get(name)
        if found is None:
            if name not in self._functions:
                raise ModelFileError(f"{by.name} ({by.op}): the file has no function {name!r}")
            found = self._bodies[name] = Body.of_function(self._functions[name])
        return found

    def call(
        self, body: Body, arguments: Sequence[Value], node: NodeDef, scope: Scope, *,
        label: str = "", repeat: int = 1, wanted: Sequence[str] | None = None,
    ) -> list[Value]:  # fmt: skip
        """Walk a function with ``arguments``; its results (only ``wanted`` ones, where given)."""
        if len(arguments) < len(body.arguments):
            raise ModelFileError(
                f"{node.name} ({node.op}): function {body.name!r} takes {len(body.arguments)} arguments, "
                f"{len(arguments)} are given"
            )
        path = self.unique(scope.path + node.name + (f".{label}" if label else ""))
        inner = Scope(body, f"{path}/", body.name, scope.repeat * repeat, scope.depth + 1)
        for formal, value in zip(body.arguments, arguments, strict=False):
            inner.values[formal] = [value]
        return self.results(inner, body.results if wanted is None else wanted)

    @contextmanager
    def collecting(self) -> Iterator[list[OpNode]]:
        """Collect emitted operators apart, to be judged before they count."""
        outer, folded, self.nodes = self.nodes, self.folded, []
        try:
            yield self.nodes
        finally:
            self.nodes, self.folded = outer, folded

    @contextmanager
    def trial(self) -> Iterator[list[OpNode]]:
        """As ``collecting``, for a walk that only asks: it leaves no names and no notes."""
        paths, notes, steps = dict(self._paths), dict(self.notes), self._steps
        with self.collecting() as nodes:
            try:
                yield nodes
            finally:
                self._paths, self.notes, self._steps = paths, notes, steps

    def keep_params(self, nodes: Sequence[OpNode]) -> None:
        """Parameters of operators that are not run are still stored with the model."""
        for node in nodes:
            self.untaken.update({param.name: param for _, param in node.params})

    def note(self, text: str) -> None:
        """Something a reader of the result must know, said once."""
        self.notes[text] = None

    def given(self, name: str) -> tuple[float, ...] | None:
        """What the user gave for ``name`` with --input-value."""
        found = self.input_values.get(name)
        if found is not None:
            self.used_values.add(name)
        return found

    def unique(self, path: str) -> str:
        """``path``, numbered where a walk before has used it."""
        count = self._paths.get(path, 0)
        self._paths[path] = count + 1
        return path if count == 0 else f"{path}#{count + 1}"

    # -- making values

    def fresh(self, name: str, dtype: int, shape: tuple[int, ...] | None, **known: Any) -> Value:
        """A value of a given type and shape whose content is not known."""
        named = dtype_name(dtype)
        spec = None if shape is None or named is None else TensorSpec(shape, named)
        return Value(name, dtype, spec, self.scratch.placeholder(dtype, shape), **known)

    def known(self, name: str, dtype: int, data: Array, **known: Any) -> Value:
        """A value whose content is known."""
        named = dtype_name(dtype)
        spec = None if named is None else TensorSpec(tuple(data.shape), named)
        return Value(name, dtype, spec, self.scratch.constant(data, dtype), data, constant=True, **known)

    def forget(self, value: Value, name: str) -> Value:
        """The value with its type, shape and what it points to, but not its content."""
        if value.tensor is None or value.variable is not None:
            return replace(value, name=name, data=None, constant=False, leaves=())
        shape = value.tensor.shape
        placeholder = self.scratch.placeholder(value.dtype, None if shape.rank is None else shape.as_list())
        return Value(name, value.dtype, value.spec, placeholder, items=value.items)

    def stored(self, key: str, spec: TensorSpec | None, *, trained: bool = False) -> tuple[Leaf, ...]:
        """The stored tensor called ``key``; ``trained``: a variable that training changes."""
        return () if spec is None else (Leaf(key, spec, spec.numel, spec.size_bytes, trained),)

    # -- the walk

    def _step(self, node: NodeDef, scope: Scope) -> Sequence[Value]:
        inputs = [scope.find(ref) for ref in scope.body.inputs(node)]
        if node.op in FORWARDS and inputs:
            return inputs[:1]
        opener = OPENERS.get(node.op)
        if opener is not None:
            return opener(self, node, inputs, scope)
        if node.op in self._functions:  # TF 1 calls a function by using its name as an operator
            return self.call(self.function(node.op, node), inputs, node, scope)
        return self.operator(node, inputs, scope)

    def operator(self, node: NodeDef, inputs: list[Value], scope: Scope) -> list[Value]:
        """Shapes, values and constness of one ordinary operator; emitted unless folded."""
        inputs = adapted(self, node, inputs, scope.body)
        results = self._inferred(node, inputs, scope)
        results = with_content(self, node, inputs, results)
        if results and all(value.constant for value in results):
            self.folded += scope.repeat > 0
            return results
        self.emit(node, inputs, results, scope)
        return results

    def emit(self, node: NodeDef, inputs: Sequence[Value], results: Sequence[Value], scope: Scope) -> None:
        """Count an operator with settled shapes, under the ONNX names that its handler gives."""
        op = Op(node, tuple(inputs), tuple(results), scope.path, scope.repeat, self.nodes)
        handler = HANDLERS.get(node.op)
        before = len(self.nodes)
        if handler is not None:
            try:
                handler(op)
                return
            except (LookupError, ArithmeticError):  # a shape or attribute that is not there: reported by name
                del self.nodes[before:]
        emit_unknown(op)

    def _inferred(self, node: NodeDef, inputs: list[Value], scope: Scope) -> list[Value]:
        tensors = [value.tensor for value in inputs]
        found = None if any(tensor is None for tensor in tensors) else self.scratch.infer(node, tensors)
        if found is None:
            return self._declared(node, inputs, scope)
        return [
            Value(
                f"{scope.path}{node.name}:{index}", tensor.dtype.base_dtype.as_datatype_enum, spec_of(tensor), tensor
            )
            for index, tensor in enumerate(found)
        ]

    def _declared(self, node: NodeDef, inputs: list[Value], scope: Scope) -> list[Value]:
        """Results of an operator that this TensorFlow does not know, as the file states them."""
        shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else []
        dtype = next((node.attr[name].type for name in ("T", "dtype", "out_type", "Tout") if name in node.attr), 0)
        dtype = dtype or (inputs[0].dtype if inputs else 0)
        if not dtype:
            return []
        results = []
        for index, shape in enumerate(shapes):
            sizes = None if shape.unknown_rank else [d.size if d.size >= 0 else None for d in shape.dim]
            tensor = self.scratch.placeholder(dtype, sizes)
            results.append(Value(f"{scope.path}{node.name}:{index}", dtype, spec_of(tensor), tensor))
        return results
