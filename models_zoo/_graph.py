"""What every zoo model is collected in: values, parameters and operators under dotted scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphcost.errors import UsageError
from graphcost.ir import BatchSource, Model, OpNode, Param, ParamKind, TensorSpec


class Graph:
    """Collects operators in execution order; ``finish`` makes the ``Model``."""

    def __init__(self, name: str, batch: int, batch_source: BatchSource) -> None:
        self._name = name
        self._batch = batch
        self._batch_source = batch_source
        self._nodes: list[OpNode] = []
        self._specs: dict[str, TensorSpec] = {}
        self._params: dict[str, Param] = {}
        self._inputs: dict[str, TensorSpec] = {}
        self._values: dict[str, tuple[int, ...]] = {}
        self._notes: list[str] = []
        self._path: list[str] = []

    @contextmanager
    def scope(self, *names: object) -> Iterator[None]:
        """Operators and parameters made inside are named ``outer.inner.name``."""
        self._path += [str(name) for name in names]
        try:
            yield
        finally:
            del self._path[len(self._path) - len(names) :]

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> str:
        """A graph input."""
        self._inputs[name] = self._specs[name] = TensorSpec(tuple(shape), dtype)
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value."""
        return self._specs[name].shape

    def param(
        self, name: str, shape: Sequence[int], *, kind: ParamKind = ParamKind.WEIGHT, sparse: bool = False
    ) -> str:
        """A stored tensor under the present scope."""
        full = self._scoped(name)
        if full in self._params:
            raise ValueError(f"zoo:{self._name}: parameter {full!r} is made twice")
        spec = TensorSpec(tuple(shape))
        self._params[full] = Param(full, spec, spec.numel, spec.size_bytes, kind, kind is ParamKind.WEIGHT, sparse)
        self._specs[full] = spec
        return full

    def constant(self, name: str, shape: Sequence[int], dtype: str = "int64") -> str:
        """A constant that is no parameter: a shape, an axis, a scale."""
        full = self._scoped(name)
        self._specs[full] = TensorSpec(tuple(shape), dtype)
        return full

    def integers(self, name: str, values: Sequence[int]) -> str:
        """A known vector of int64: bounds, axes, a target shape."""
        full = self.constant(name, (len(values),))
        self._values[full] = tuple(values)
        return full

    def op(
        self, op_type: str, inputs: Sequence[str], shape: Sequence[int], *, name: str = "", dtype: str = "float32",
        values: dict[int, tuple[int | float, ...]] | None = None, **attrs: Any,
    ) -> str:  # fmt: skip
        """One operator with one output of ``shape``; raises ``UsageError`` where sizes leave nothing of it."""
        label = self._scoped(name or f"{op_type.lower()}_{len(self._nodes)}")
        output = f"{label}:out"
        if min(shape, default=1) < 1:
            raise UsageError(
                f"zoo:{self._name}: {label} ({op_type}) would have shape {list(shape)}; the sizes given are too small"
            )
        spec = self._specs[output] = TensorSpec(tuple(shape), dtype)
        self._nodes.append(
            OpNode(
                name=label,
                op_type=op_type,
                inputs=tuple(self._specs[i] if i else None for i in inputs),
                outputs=(spec,),
                attrs=attrs,
                input_names=tuple("" if i in self._params else i for i in inputs),
                output_names=(output,),
                params=tuple((i, self._params[value]) for i, value in enumerate(inputs) if value in self._params),
                values={**{i: self._values[v] for i, v in enumerate(inputs) if v in self._values}, **(values or {})},
                module=".".join(self._path),
                origin=f"models_zoo {self._name}",
            )
        )
        return output

    def finish(self, *outputs: str) -> Model:
        """The model with these outputs."""
        return Model(
            name=self._name,
            source=f"zoo:{self._name}",
            format="zoo",
            nodes=tuple(self._nodes),
            inputs=self._inputs,
            outputs=outputs,
            batch=self._batch,
            batch_source=self._batch_source,
            notes=tuple(self._notes),
        )

    def _scoped(self, name: str) -> str:
        return ".".join([*self._path, name])

    def refuse(self, size: str, value: int, right: str) -> UsageError:
        """The error for a size that the model cannot take."""
        return UsageError(f"--dim {size}={value}: zoo:{self._name} takes {right}")

    def note(self, text: str) -> None:
        """What a reader of the model must know: an assumption, a part left out."""
        self._notes.append(text)

    def count(self) -> int:
        """Operators so far: makes names unique."""
        return len(self._nodes)
