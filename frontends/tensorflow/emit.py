"""From a TensorFlow operator with settled shapes to neutral ``OpNode``s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphcost.frontends.onnx.values import Value as OnnxValue
from graphcost.frontends.onnx.weights import slot_params
from graphcost.frontends.tensorflow.body import NodeDef
from graphcost.frontends.tensorflow.values import Value
from graphcost.ir import OpNode, Param, ParamKind, TensorSpec

UNMAPPED_DOMAIN = "tf"
"""Domain of operators without an entry: no rule has it, so they are reported by name."""

FOLDED_AS: dict[str, str] = {}
"""TensorFlow operator -> ONNX operator whose treatment of stored tensors it shares. Filled by ``names``."""

_CALLS = ("StatefulPartitionedCall", "PartitionedCall")
_RUNNING_STATISTICS = ("moving_mean", "moving_variance", "moving_var")


@dataclass(frozen=True, slots=True)
class Op:
    """One operator with its values; ``emit`` adds neutral operators to the walk's list."""

    node: NodeDef
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    path: str
    repeat: int
    into: list[OpNode]

    @property
    def name(self) -> str:
        """Unique over the model: the calls it is in, and its own name."""
        return self.path + str(self.node.name)

    def input(self, index: int) -> Value:
        """Input ``index``; raises ``LookupError`` where it is absent."""
        return self.inputs[index]

    def shape(self, index: int) -> tuple[int, ...]:
        """Shape of input ``index``; raises ``LookupError`` where it is not known."""
        return known(self.inputs[index].spec, self.name).shape

    @property
    def out(self) -> TensorSpec:
        """The first result's shape; raises ``LookupError`` where it is not known."""
        return known(self.outputs[0].spec, self.name)

    def flag(self, name: str) -> bool:
        """A boolean attribute, False where absent."""
        return bool(self.node.attr[name].b) if name in self.node.attr else False

    def number(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.node.attr[name].i) if name in self.node.attr else default

    def text(self, name: str, default: str = "") -> str:
        """A text attribute."""
        return self.node.attr[name].s.decode("utf-8", "replace") if name in self.node.attr else default

    def ints(self, name: str) -> tuple[int, ...]:
        """A list attribute."""
        return tuple(int(i) for i in self.node.attr[name].list.i) if name in self.node.attr else ()

    def emit(
        self, op_type: str, inputs: Sequence[Value | None], *, specs: Mapping[int, TensorSpec] | None = None,
        outputs: Sequence[TensorSpec | None] | None = None, names: Sequence[str] | None = None,
        domain: str = "", suffix: str = "", **attrs: Any,
    ) -> None:  # fmt: skip
        """One neutral operator. ``specs`` replaces inputs' shapes (channels first, weights output first)."""
        shapes = [None if value is None else value.spec for value in inputs]
        for index, spec in (specs or {}).items():
            shapes[index] = spec
        made = tuple(value.name for value in self.outputs) if names is None else tuple(names)
        results = tuple(value.spec for value in self.outputs) if outputs is None else tuple(outputs)
        self.into.append(
            OpNode(
                name=self.name + suffix,
                op_type=op_type,
                domain=domain,
                inputs=tuple(shapes),
                outputs=results,
                attrs=attrs,
                input_names=tuple("" if value is None else value.name for value in inputs),
                output_names=made[: len(results)],
                params=tuple(
                    (index, param)
                    for index, value in enumerate(inputs)
                    if value is not None
                    for param in params_of(op_type, domain, index, value)
                ),
                repeat=self.repeat,
                module=module_of(self.path, self.node.name),
                origin=f"{self.node.op} {self.node.name}",
            )
        )


Handler = Callable[[Op], None]

HANDLERS: dict[str, Handler] = {}
"""TensorFlow operator -> what it becomes. Filled by ``names`` and the ``layers`` modules."""


def handles(*op_types: str) -> Callable[[Handler], Handler]:
    """Register a handler for TensorFlow operator names."""

    def register(handler: Handler) -> Handler:
        for op_type in op_types:
            if op_type in HANDLERS:
                raise ValueError(f"TensorFlow operator {op_type} has two entries")
            HANDLERS[op_type] = handler
        return handler

    return register


def emit_unknown(op: Op) -> None:
    """An operator without an entry, under its own name."""
    op.emit(str(op.node.op), op.inputs, domain=UNMAPPED_DOMAIN)


def params_of(op_type: str, domain: str, index: int, value: Value) -> tuple[Param, ...]:
    """The parameters that input ``index`` brings; running statistics are buffers wherever they go."""
    if not value.leaves:
        return ()
    return tuple(_settled(param) for param in slot_params(op_type, domain, index, onnx_value(value)))


def _settled(param: Param) -> Param:
    if param.name.rpartition("/")[2].partition(":")[0] in _RUNNING_STATISTICS:
        return replace(param, kind=ParamKind.BUFFER, trainable=False)
    return param


def onnx_value(value: Value) -> OnnxValue:
    """The value as the table of weight slots reads it."""
    return OnnxValue(value.name, value.spec, leaves=value.leaves)


def known(spec: TensorSpec | None, name: str) -> TensorSpec:
    """``spec``; raises ``LookupError`` where it is not known."""
    if spec is None:
        raise LookupError(f"{name}: a shape is not known")
    return spec


def module_of(path: str, name: str) -> str:
    """Dotted path of the enclosing block: the slashes in TensorFlow's names, calls left out."""
    parts = [part for part in f"{path}{name}".split("/")[:-1] if part]
    return ".".join(part for part in parts if not part.startswith(_CALLS))
