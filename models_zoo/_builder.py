"""A small builder of op graphs: ONNX operators with shapes worked out by hand, no framework.

Sizes are elements, images NCHW, tokens ``[batch, seq]``. Every method appends operators
and returns the name of its result; ``scope`` nests dotted module paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphcost.errors import UsageError
from graphcost.ir import BatchSource, Model, OpNode, Param, ParamKind, TensorSpec


class Builder:
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

    def note_classifier_grid(self, x: str, *, side: int) -> None:
        """Say so where the grid before the classifier is not the ``side`` x ``side`` of the published weights."""
        found = self.shape(x)[2]
        if found != side:
            # assumed: the classifier grows; torchvision instead pools any grid to this one
            self._notes.append(
                f"assumed: the first fully connected layer reads {found}x{found} positions, "
                f"the published weights {side}x{side}; parameters differ from the published ones"
            )

    # -- layers

    def conv(
        self, x: str, channels: int, kernel: int, *, stride: int = 1, pad: int = 0, groups: int = 1,
        bias: bool = False, name: str = "conv",
    ) -> str:  # fmt: skip
        """2-D convolution ``[N, C, H, W] -> [N, channels, H', W']``, square kernel."""
        n, c, h, w = self.shape(x)
        weight = self.param(f"{name}.weight", (channels, c // groups, kernel, kernel))
        inputs = [x, weight, *([self.param(f"{name}.bias", (channels,))] if bias else [])]
        size = [(side + 2 * pad - kernel) // stride + 1 for side in (h, w)]
        return self.op(
            "Conv", inputs, (n, channels, *size), name=name, kernel_shape=(kernel, kernel), strides=(stride, stride),
            pads=(pad,) * 4, group=groups, dilations=(1, 1),
        )  # fmt: skip

    def batch_norm(self, x: str, name: str = "bn") -> str:
        """Batch normalisation over channels; running statistics are buffers."""
        channels = (self.shape(x)[1],)
        slots = [self.param(f"{name}.weight", channels), self.param(f"{name}.bias", channels)]
        slots += [
            self.param(f"{name}.{part}", channels, kind=ParamKind.BUFFER) for part in ("running_mean", "running_var")
        ]
        return self.op("BatchNormalization", [x, *slots], self.shape(x), name=name)

    def layer_norm(self, x: str, name: str = "norm") -> str:
        """Layer normalisation over the last axis."""
        width = (self.shape(x)[-1],)
        slots = [self.param(f"{name}.weight", width), self.param(f"{name}.bias", width)]
        return self.op("LayerNormalization", [x, *slots], self.shape(x), name=name, axis=-1)

    def pointwise(self, op_type: str, *inputs: str, name: str = "", **attrs: Any) -> str:
        """An operator that keeps the first input's shape."""
        return self.op(op_type, inputs, self.shape(inputs[0]), name=name, **attrs)

    def dropout(self, x: str, ratio: float = 0.1) -> str:
        """Active in a training step, nothing in inference."""
        return self.pointwise("Dropout", x, ratio=ratio)

    def relu(self, x: str) -> str:
        """Rectifier."""
        return self.pointwise("Relu", x)

    def max_pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        """2-D maximum pooling."""
        n, c, h, w = self.shape(x)
        size = [(side + 2 * pad - kernel) // stride + 1 for side in (h, w)]
        return self.op(
            "MaxPool", [x], (n, c, *size), kernel_shape=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4
        )

    def global_average_pool(self, x: str) -> str:
        """``[N, C, H, W] -> [N, C, 1, 1]``."""
        return self.op("GlobalAveragePool", [x], (*self.shape(x)[:2], 1, 1))

    def flatten(self, x: str) -> str:
        """``[N, ...] -> [N, numel]``."""
        n, *rest = self.shape(x)
        numel = 1
        for size in rest:
            numel *= size
        return self.op("Flatten", [x], (n, numel), axis=1)

    def gemm(self, x: str, features: int, *, name: str = "fc") -> str:
        """Fully connected layer on a matrix, weight ``[features, in]``."""
        n, width = self.shape(x)
        weight, bias = self.param(f"{name}.weight", (features, width)), self.param(f"{name}.bias", (features,))
        return self.op("Gemm", [x, weight, bias], (n, features), name=name, transB=1)

    def linear(self, x: str, features: int, *, bias: bool = True, name: str = "linear") -> str:
        """Fully connected layer on the last axis, as exporters write it: MatMul and Add."""
        *lead, width = self.shape(x)
        weight = self.param(f"{name}.weight", (width, features))
        y = self.op("MatMul", [x, weight], (*lead, features), name=name)
        return self.op("Add", [y, self.param(f"{name}.bias", (features,))], (*lead, features)) if bias else y

    def embedding(self, ids: str, rows: int, width: int, *, name: str, sparse: bool = False) -> str:
        """Rows of a table: ``[...] -> [..., width]``."""
        table = self.param(f"{name}.weight", (rows, width), sparse=sparse)
        return self.op("Gather", [table, ids], (*self.shape(ids), width), name=name, axis=0)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """A view."""
        target = self.integers(f"shape_{len(self._nodes)}", shape)
        return self.op("Reshape", [x, target], shape)

    def part(self, x: str, start: int, end: int, *, name: str) -> str:
        """``[..., start:end]`` along the last axis."""
        bounds = [self.integers(f"{name}.{key}", [at]) for key, at in (("start", start), ("end", end), ("axis", -1))]
        return self.op("Slice", [x, *bounds], (*self.shape(x)[:-1], end - start), name=name)

    def transpose(self, x: str, order: Sequence[int]) -> str:
        """A permuted copy."""
        return self.op("Transpose", [x], [self.shape(x)[axis] for axis in order], perm=tuple(order))

    def attention(self, q: str, k: str, v: str, heads: int, mask: str | None = None, *, dropout: bool = False) -> str:
        """Scaled dot-product attention on ``[B, S, H*d]`` in primitive operators."""
        batch, queries, width = self.shape(q)
        keys, size = self.shape(k)[1], width // heads
        q = self.transpose(self.reshape(q, (batch, queries, heads, size)), (0, 2, 1, 3))
        k = self.transpose(self.reshape(k, (batch, keys, heads, size)), (0, 2, 3, 1))
        v = self.transpose(self.reshape(v, (batch, keys, heads, size)), (0, 2, 1, 3))
        scores = self.op("MatMul", [q, k], (batch, heads, queries, keys), name="scores")
        scores = self.pointwise("Div", scores, self.constant("scale", (), "float32"))
        if mask is not None:
            scores = self.pointwise("Add", scores, mask)
        weights = self.pointwise("Softmax", scores, axis=-1)
        weights = self.dropout(weights) if dropout else weights
        context = self.op("MatMul", [weights, v], (batch, heads, queries, size), name="context")
        return self.reshape(self.transpose(context, (0, 2, 1, 3)), (batch, queries, width))
