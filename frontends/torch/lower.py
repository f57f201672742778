"""From torch records to neutral operators: one walk, one entry of the table per aten name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from graphcost.errors import MissingSizeError
from graphcost.frontends.torch.binding import resolve
from graphcost.frontends.torch.records import Exported, Ref, TorchGraph, TorchOp
from graphcost.ir import OpNode, Param, ParamKind, TensorSpec

CostOf = Callable[[Sequence[OpNode]], tuple[int, int]]
Handler = Callable[["Lowering", TorchOp], None]

HANDLERS: dict[str, Handler] = {}
"""aten name without overload (``aten.linear``) -> what it becomes. Filled by the ``names_*`` modules."""

UNMAPPED_DOMAIN = "torch"
"""Domain of operators without an entry: no rule has it, so they are reported by name."""


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for aten names without overload."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"torch operator {name} has two entries")
            HANDLERS[name] = handler
        return handler

    return register


@dataclass(slots=True)
class Frame:
    """Values of one graph being walked: shapes, aliases of views, what is constant."""

    specs: dict[str, TensorSpec | None]
    alias: dict[str, str] = field(default_factory=dict)
    repeat: int = 1
    path: str = ""


class Lowering:
    """Walks an export; ``nodes`` is the result, in execution order."""

    def __init__(
        self, exported: Exported, symbols: Mapping[str, int], cost_of: CostOf, trips: Mapping[str, int]
    ) -> None:
        self.nodes: list[OpNode] = []
        self.notes: dict[str, None] = dict.fromkeys(exported.notes)
        self.folded = 0
        self.untaken: dict[str, Param] = {}
        self._exported = exported
        self._symbols = symbols
        self._cost_of = cost_of
        self._trips = trips
        self._constant: set[str] = set()
        self._params: dict[str, str] = dict(exported.params)  # value -> state-dict name; views of a weight follow it
        self._buffers: dict[str, str] = dict(exported.buffers)
        self._values = 0
        self.frame = Frame(dict(resolve(exported.graph, symbols)))

    def run(self) -> None:
        """Walk the whole export."""
        self._constant |= set(self._buffers)
        self._walk(self._exported.graph)

    # -- what handlers use

    def spec(self, value: Any) -> TensorSpec | None:
        """The shape of an argument; None where it is no tensor, or open."""
        return self.frame.specs.get(value.name) if isinstance(value, Ref) else None

    def need(self, op: TorchOp, value: Any) -> TensorSpec:
        """The shape of an argument that an operator cannot do without."""
        found = self.spec(value)
        if found is None:
            raise LookupError(f"{op.name} ({op.target}): an argument has no known shape")
        return found

    def out(self, op: TorchOp, index: int = 0) -> TensorSpec | None:
        """The shape of a result."""
        return self.frame.specs.get(op.outputs[index]) if index < len(op.outputs) else None

    def emit(
        self, op: TorchOp, op_type: str, inputs: Sequence[Any], *, specs: Mapping[int, TensorSpec] | None = None,
        outputs: Sequence[TensorSpec | None] | None = None, names: Sequence[str] | None = None, domain: str = "",
        suffix: str = "", kind: ParamKind = ParamKind.WEIGHT, kinds: Mapping[int, ParamKind] | None = None,
        slots: Sequence[int] | None = None, **attrs: Any,
    ) -> None:  # fmt: skip
        """One neutral operator. ``specs`` replaces inputs' shapes (weights seen transposed, flattened views).

        ``slots``: inputs that are weights, biases or tables; all of them by default.
        ``kinds``: slots that hold buffers.
        """
        shapes = [self.spec(value) for value in inputs]
        for index, spec in (specs or {}).items():
            shapes[index] = spec
        params = []
        for index, value in enumerate(inputs):
            if slots is None or index in slots:
                wanted = (kinds or {}).get(index, kind)
                params += [(index, param) for param in self._params_of(value, wanted)]
        self.nodes.append(
            OpNode(
                name=self.frame.path + op.name + suffix,
                op_type=op_type,
                domain=domain,
                inputs=tuple(shapes),
                outputs=tuple([self.frame.specs.get(name) for name in op.outputs] if outputs is None else outputs),
                attrs=attrs,
                input_names=tuple(self._name(value) for value in inputs),
                output_names=tuple(self.frame.path + name for name in (op.outputs if names is None else names)),
                params=tuple(params),
                repeat=self.frame.repeat,
                module=op.module,
                origin=op.origin,
            )
        )

    def emit_recurrent(
        self, op: TorchOp, kind: str, source: Any, parts: Sequence[Sequence[Any]], specs: Mapping[int, TensorSpec],
        states: Sequence[Any], made: Mapping[str, TensorSpec | None], suffix: str, hidden: int, dirs: int,
    ) -> None:  # fmt: skip
        """A layer of a recurrent network: the weights of all directions share a slot.

        ``states`` are the initial ones (inputs 5 and 6), ``made`` the results by name.
        """
        first = [source, *([None] * 4), *states] if states else [source, *([None] * (len(specs) - 1))]
        self.emit(
            op, kind, first, specs=specs, outputs=list(made.values()), names=list(made), suffix=suffix,
            slots=(5, 6), hidden_size=hidden, direction="bidirectional" if dirs == 2 else "forward",
        )  # fmt: skip
        found = [
            (1 + min(position, 2), param)
            for part in parts
            for position, value in enumerate(part)
            for param in self._params_of(value, ParamKind.WEIGHT)
        ]
        self.nodes[-1] = replace(self.nodes[-1], params=(*found, *self.nodes[-1].params))

    def add_params(self, slot: int, value: Any) -> None:
        """A further stored tensor in a slot of the operator emitted last."""
        found = [(slot, param) for param in self._params_of(value, ParamKind.WEIGHT)]
        self.nodes[-1] = replace(self.nodes[-1], params=(*self.nodes[-1].params, *found))

    def view(self, op: TorchOp, source: Any) -> None:
        """A result that shares its source's storage: no operator, a view of a weight is that weight."""
        if not isinstance(source, Ref):
            return
        for name in op.outputs:
            self.frame.alias[name] = self.frame.alias.get(source.name, source.name)
            for table in (self._params, self._buffers):
                if source.name in table:
                    table[name] = table[source.name]
            if source.name in self._constant:
                self._constant.add(name)

    def is_param(self, value: Any) -> bool:
        """Whether an argument is a stored parameter, or a view of one."""
        return isinstance(value, Ref) and value.name in self._params

    def is_constant(self, value: Any) -> bool:
        """Whether an argument is the same at every step and no parameter."""
        return isinstance(value, Ref) and value.name in self._constant

    def is_made(self, value: Any) -> bool:
        """Whether an argument is the result of an operator, or an input of the model."""
        return isinstance(value, Ref) and bool(self._name(value))

    def note(self, text: str) -> None:
        """Something a reader of the result must know, said once."""
        self.notes[text] = None

    def trip_count(self, op: TorchOp) -> int:
        """What the user gave for a loop; raises ``MissingSizeError`` naming it."""
        if op.name not in self._trips:
            raise MissingSizeError(
                f"{op.name} ({op.target}): its trip count depends on data; give --input-value {op.name}=N"
            )
        return self._trips[op.name]

    def subgraph(
        self, op: TorchOp, label: str, graph: TorchGraph, arguments: Sequence[Any], repeat: int = 1
    ) -> TorchGraph:
        """Walk a body with ``arguments`` as its inputs; its outputs become ``op``'s."""
        outer = self.frame
        inner = Frame(
            dict(resolve(graph, self._symbols)), repeat=outer.repeat * repeat, path=f"{outer.path}{op.name}.{label}/"
        )
        saved = dict(self._params), dict(self._buffers), set(self._constant)
        for formal in graph.inputs:
            self._params.pop(formal, None)
            self._buffers.pop(formal, None)
        for formal, value in zip(graph.inputs, arguments, strict=False):
            if not isinstance(value, Ref):
                continue
            if value.name in saved[0]:
                self._params[formal] = saved[0][value.name]
            elif value.name in saved[1]:
                self._buffers[formal] = saved[1][value.name]
            else:
                with_outer = self.frame.alias.get(value.name, value.name)
                inner.alias[formal] = with_outer if with_outer.startswith("^") else f"^{outer.path}{with_outer}"
        self.frame = inner
        try:
            self._walk(graph)
        finally:
            results = [self._name(Ref(name)) for name in graph.outputs]
            self.frame = outer
            self._params, self._buffers, self._constant = saved
        for name, result in zip(op.outputs, results, strict=False):
            outer.alias[name] = f"^{result}"
        return graph

    @contextmanager
    def collecting(self) -> Iterator[list[OpNode]]:
        """Collect operators apart, to be judged before they count."""
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def dearer(self, op: TorchOp, branches: Mapping[str, Sequence[OpNode]]) -> None:
        """Count the dearer branch; parameters of the others stay with the model."""
        chosen = max(branches, key=lambda name: self._cost_of(branches[name]))
        for name, nodes in branches.items():
            if name == chosen:
                self.nodes.extend(nodes)
            else:
                self.untaken.update({param.name: param for node in nodes for _, param in node.params})
        self.note(f"{op.name} (cond): its condition is not known; the dearer branch ({chosen}) is counted")

    # -- the walk

    def _walk(self, graph: TorchGraph) -> None:
        for op in graph.ops:
            base = op.target.rpartition(".")[0] if op.target.count(".") > 1 else op.target
            if not op.outputs and not op.graphs:
                continue  # assertions and symbolic arithmetic make no tensor
            refs = list(_refs(op.args.values()))
            if not op.graphs and all(ref.name in self._constant for ref in refs) and not base.startswith("aten.rand"):
                self.folded += 1
                self._constant.update(op.outputs)
                continue
            self._name_open_size(op, refs)
            handler = HANDLERS.get(base)
            try:
                if handler is not None:
                    handler(self, op)
                    continue
            except LookupError:
                pass  # a shape that is not known: reported by name below
            self.emit(op, base, refs, domain=UNMAPPED_DOMAIN)

    def _name_open_size(self, op: TorchOp, refs: Sequence[Ref]) -> None:
        """A note where an operator of known sizes makes one that is not: it depends on the data."""
        specs = self.frame.specs
        if any(specs.get(name, op) is None for name in op.outputs) and all(specs.get(ref.name, op) for ref in refs):
            self.note(f"{op.name} ({op.target}): the size of its result depends on data; what uses it is not counted")

    def _name(self, value: Any) -> str:
        if not isinstance(value, Ref) or value.name in self._params or value.name in self._constant:
            return ""
        root = self.frame.alias.get(value.name, value.name)
        return root[1:] if root.startswith("^") else self.frame.path + root

    def _params_of(self, value: Any, kind: ParamKind) -> list[Param]:
        if not isinstance(value, Ref):
            return []
        stored = self._params.get(value.name)
        if stored is None and kind is ParamKind.BUFFER:
            stored = self._buffers.get(value.name)
        if stored is None:
            return []
        meta_name = next(
            (v for v, s in (*self._exported.params.items(), *self._exported.buffers.items()) if s == stored), None
        )
        meta = self._exported.graph.tensors.get(meta_name or "")
        if meta is None:
            return []
        spec = TensorSpec(tuple(size for size in meta.sizes if isinstance(size, int)), meta.dtype)
        trained = kind is ParamKind.WEIGHT and meta.requires_grad
        name = self._exported.storage.get(stored, stored)
        return [Param(name, spec, spec.numel, spec.size_bytes, kind, trained)]


def _refs(values: Any) -> Iterator[Ref]:
    for value in values:
        if isinstance(value, Ref):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _refs(value)
