"""A small builder of op graphs: ONNX operators with shapes worked out by hand, no framework.

Sizes are elements, images ``[N, C, H, W]`` (or one or three spatial axes), tokens ``[batch, seq]``.
Every method appends operators and returns the name of its result; ``scope`` nests dotted module paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from graphcost.ir import ParamKind
from graphcost.models_zoo._graph import Graph

Sizes = int | tuple[int, ...]
"""One size for every spatial axis, or one each."""


def _each(size: Sizes, axes: int) -> tuple[int, ...]:
    return (size,) * axes if isinstance(size, int) else size


class Builder(Graph):
    """The layers that the zoo's models are made of."""

    id_dtype = "int64"
    """Of token ids that are fed in: int64 by torch's tokenizers, int32 by TensorFlow's input pipelines."""

    frozen_norm = False
    """Whether batch normalisation only scales and shifts by stored values, as detectors keep their backbones."""

    # -- images

    def conv(
        self, x: str, channels: int, kernel: Sizes, *, stride: Sizes = 1, pad: Sizes = 0,
        pad_end: Sizes | None = None, groups: int = 1, dilation: Sizes = 1, bias: bool = False, name: str = "conv",
    ) -> str:  # fmt: skip
        """Convolution ``[N, C, *] -> [N, channels, *]`` over one, two or three spatial axes.

        ``pad_end`` is the padding at the far end of every axis where it differs from ``pad``.
        """
        n, c, *sides = self.shape(x)
        end = pad if pad_end is None else pad_end
        k, s, p, e, d = (_each(size, len(sides)) for size in (kernel, stride, pad, end, dilation))
        weight = self.param(f"{name}.weight", (channels, c // groups, *k))
        inputs = [x, weight, *([self.param(f"{name}.bias", (channels,))] if bias else [])]
        size = [
            (side + pi + ei - di * (ki - 1) - 1) // si + 1
            for side, ki, si, pi, ei, di in zip(sides, k, s, p, e, d, strict=True)
        ]
        return self.op(
            "Conv", inputs, (n, channels, *size), name=name, kernel_shape=k, strides=s, pads=(*p, *e), group=groups,
            dilations=d,
        )  # fmt: skip

    def conv_transpose(self, x: str, channels: int, kernel: int, *, stride: int, pad: int = 0, out_pad: int = 0,
                       bias: bool = True, name: str = "up") -> str:  # fmt: skip
        """Transposed convolution: sides grow ``stride`` times."""
        n, c, *sides = self.shape(x)
        axes = len(sides)
        weight = self.param(f"{name}.weight", (c, channels, *_each(kernel, axes)))
        inputs = [x, weight, *([self.param(f"{name}.bias", (channels,))] if bias else [])]
        size = [(side - 1) * stride - 2 * pad + kernel + out_pad for side in sides]
        return self.op(
            "ConvTranspose", inputs, (n, channels, *size), name=name, kernel_shape=_each(kernel, axes),
            strides=_each(stride, axes), pads=_each(pad, 2 * axes), output_padding=_each(out_pad, axes), group=1,
            dilations=_each(1, axes),
        )  # fmt: skip

    def batch_norm(self, x: str, name: str = "bn") -> str:
        """Batch normalisation over channels; running statistics are buffers."""
        channels = (self.shape(x)[1],)
        kinds = dict.fromkeys(("weight", "bias"), ParamKind.BUFFER if self.frozen_norm else ParamKind.WEIGHT)
        kinds |= dict.fromkeys(("running_mean", "running_var"), ParamKind.BUFFER)
        slots = [self.param(f"{name}.{part}", channels, kind=kind) for part, kind in kinds.items()]
        return self.op("BatchNormalization", [x, *slots], self.shape(x), name=name)

    def instance_norm(self, x: str, name: str = "norm") -> str:
        """Instance normalisation with a scale and shift a channel."""
        channels = (self.shape(x)[1],)
        slots = [self.param(f"{name}.weight", channels), self.param(f"{name}.bias", channels)]
        return self.op("InstanceNormalization", [x, *slots], self.shape(x), name=name)

    def _pool(self, op_type: str, x: str, kernel: Sizes, stride: Sizes, pad: Sizes, ceil: bool, **attrs: Any) -> str:
        n, c, *sides = self.shape(x)
        k, s, p = (_each(size, len(sides)) for size in (kernel, stride, pad))
        size = []
        for side, ki, si, pi in zip(sides, k, s, p, strict=True):
            span = side + 2 * pi - ki
            out = (-(-span // si) if ceil else span // si) + 1
            size.append(out - 1 if ceil and (out - 1) * si >= side + pi else out)
        if ceil:
            attrs["ceil_mode"] = 1
        return self.op(op_type, [x], (n, c, *size), kernel_shape=k, strides=s, pads=(*p, *p), **attrs)

    def max_pool(self, x: str, kernel: Sizes, stride: Sizes, pad: Sizes = 0, *, ceil: bool = False) -> str:
        """Maximum pooling; ``ceil`` keeps a last, partial window that starts inside."""
        return self._pool("MaxPool", x, kernel, stride, pad, ceil)

    def average_pool(self, x: str, kernel: Sizes, stride: Sizes, pad: Sizes = 0) -> str:
        """Average pooling."""
        return self._pool("AveragePool", x, kernel, stride, pad, False)

    def global_average_pool(self, x: str) -> str:
        """``[N, C, *] -> [N, C, 1...]``."""
        n, c, *sides = self.shape(x)
        return self.op("GlobalAveragePool", [x], (n, c, *(1 for _ in sides)))

    def resize(self, x: str, sides: Sequence[int], mode: str = "nearest") -> str:
        """Interpolated to these spatial sides."""
        shape = (*self.shape(x)[:2], *sides)
        return self.op("Resize", [x, "", "", self.integers(f"sizes_{self.count()}", shape)], shape, mode=mode)

    def flatten(self, x: str) -> str:
        """``[N, ...] -> [N, numel]``."""
        n, *rest = self.shape(x)
        return self.op("Flatten", [x], (n, prod(rest)), axis=1)

    def note_classifier_grid(self, x: str, *, side: int) -> None:
        """Say so where the grid before the classifier is not the ``side`` x ``side`` of the published weights."""
        found = self.shape(x)[2]
        if found != side:
            # assumed: the classifier grows; torchvision instead pools any grid to this one
            self.note(
                f"assumed: the first fully connected layer reads {found}x{found} positions, "
                f"the published weights {side}x{side}; parameters differ from the published ones"
            )

    # -- elementwise

    def pointwise(self, op_type: str, *inputs: str, name: str = "", **attrs: Any) -> str:
        """An operator that keeps the first input's shape."""
        return self.op(op_type, inputs, self.shape(inputs[0]), name=name, **attrs)

    def add(self, x: str, y: str) -> str:
        """A sum of the first's shape."""
        return self.pointwise("Add", x, y)

    def dropout(self, x: str, ratio: float = 0.1) -> str:
        """Active in a training step, nothing in inference."""
        return self.pointwise("Dropout", x, ratio=ratio)

    def relu(self, x: str) -> str:
        """Rectifier."""
        return self.pointwise("Relu", x)

    def clip(self, x: str) -> str:
        """Clipped between two constants: ReLU6 and its kin."""
        return self.pointwise("Clip", x, self.constant("low", (), "float32"), self.constant("high", (), "float32"))

    def swish(self, x: str) -> str:
        """``x * sigmoid(x)``, as exporters write SiLU."""
        return self.pointwise("Mul", x, self.pointwise("Sigmoid", x))

    def mask(self, name: str, shape: Sequence[int]) -> str:
        """A constant of ``shape`` that is added to attention scores."""
        return self.constant(name, shape, "float32")

    # -- vectors and tokens

    def layer_norm(self, x: str, name: str = "norm", *, bias: bool = True) -> str:
        """Layer normalisation over the last axis."""
        width = (self.shape(x)[-1],)
        slots = [self.param(f"{name}.weight", width), *([self.param(f"{name}.bias", width)] if bias else [])]
        return self.op("LayerNormalization", [x, *slots], self.shape(x), name=name, axis=-1)

    def rms_norm(self, x: str, name: str = "norm") -> str:
        """Root mean square normalisation over the last axis."""
        weight = self.param(f"{name}.weight", (self.shape(x)[-1],))
        return self.op("RMSNormalization", [x, weight], self.shape(x), name=name, axis=-1)

    def gemm(self, x: str, features: int, *, bias: bool = True, name: str = "fc") -> str:
        """Fully connected layer on a matrix, weight ``[features, in]``."""
        n, width = self.shape(x)
        slots = [self.param(f"{name}.weight", (features, width))]
        slots += [self.param(f"{name}.bias", (features,))] if bias else []
        return self.op("Gemm", [x, *slots], (n, features), name=name, transB=1)

    def tied_head(self, x: str, table: str) -> str:
        """Logits over the rows of an embedding ``table`` (a parameter's full name)."""
        *lead, width = self.shape(x)
        rows = self.shape(table)[0]
        logits = self.op(
            "Gemm", [self.reshape(x, (prod(lead), width)), table], (prod(lead), rows), name="head", transB=1
        )
        return self.reshape(logits, (*lead, rows))

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

    def first_token(self, x: str) -> str:
        """``[batch, seq, width] -> [batch, width]``."""
        batch, _, width = self.shape(x)
        return self.op("Gather", [x, self.constant("first", ())], (batch, width), axis=1, values={1: (0,)})

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """A view."""
        return self.op("Reshape", [x, self.integers(f"shape_{self.count()}", shape)], shape)

    def part(self, x: str, start: int, end: int, *, name: str, axis: int = -1) -> str:
        """``start:end`` along an axis, the last unless told."""
        bounds = [
            self.integers(f"{name}.{key}", [at]) for key, at in (("start", start), ("end", end), ("axis", axis))
        ]
        shape = list(self.shape(x))
        shape[axis] = end - start
        return self.op("Slice", [x, *bounds], shape, name=name)

    def reduce(self, op_type: str, x: str, axis: int) -> str:
        """``ReduceSum``, ``ReduceMean`` and their kin over one axis, which goes."""
        shape = list(self.shape(x))
        del shape[axis]
        return self.op(op_type, [x, self.integers(f"axes_{self.count()}", [axis])], shape, keepdims=0)

    def concat(self, *inputs: str, axis: int = 1) -> str:
        """Joined along an axis."""
        shape = list(self.shape(inputs[0]))
        shape[axis] = sum(self.shape(x)[axis] for x in inputs)
        return self.op("Concat", inputs, shape, axis=axis)

    def transpose(self, x: str, order: Sequence[int]) -> str:
        """A permuted copy."""
        return self.op("Transpose", [x], [self.shape(x)[axis] for axis in order], perm=tuple(order))

    def recurrent(
        self, op_type: str, x: str, hidden: int, *, name: str, both: bool = False, summed: bool = False
    ) -> str:
        """LSTM or GRU on ``[T, B, I]`` -> ``[T, B, directions * hidden]``; two bias vectors, as torch keeps them.

        ``both`` directions are joined, or ``summed`` to ``[T, B, hidden]``.
        """
        steps, batch, features = self.shape(x)
        directions, rows = 2 if both else 1, {"LSTM": 4, "GRU": 3}[op_type] * hidden
        slots = [
            self.param(f"{name}.weight_ih", (directions, rows, features)),
            self.param(f"{name}.weight_hh", (directions, rows, hidden)),
            self.param(f"{name}.bias", (directions, 2 * rows)),
        ]
        attrs: dict[str, Any] = {"linear_before_reset": 1} if op_type == "GRU" else {}
        y = self.op(
            op_type, [x, *slots], (steps, directions, batch, hidden), name=name, hidden_size=hidden,
            direction="bidirectional" if both else "forward", **attrs,
        )  # fmt: skip
        if summed:
            return self.reduce("ReduceSum", y, 1)
        y = self.transpose(y, (0, 2, 1, 3)) if both else y
        return self.reshape(y, (steps, batch, directions * hidden))

    # -- attention

    def attention(self, q: str, k: str, v: str, heads: int, mask: str | None = None, *, dropout: bool = False,
                  scaled: bool = True) -> str:  # fmt: skip
        """Scaled dot-product attention on ``[B, S, H*d]`` in primitive operators."""
        batch, queries, width = self.shape(q)
        keys, size = self.shape(k)[1], width // heads
        q = self.transpose(self.reshape(q, (batch, queries, heads, size)), (0, 2, 1, 3))
        k = self.transpose(self.reshape(k, (batch, keys, heads, size)), (0, 2, 3, 1))
        v = self.transpose(self.reshape(v, (batch, keys, heads, size)), (0, 2, 1, 3))
        scores = self.op("MatMul", [q, k], (batch, heads, queries, keys), name="scores")
        if scaled:
            scores = self.pointwise("Div", scores, self.constant("scale", (), "float32"))
        if mask is not None:
            scores = self.pointwise("Add", scores, mask)
        weights = self.pointwise("Softmax", scores, axis=-1)
        weights = self.dropout(weights) if dropout else weights
        context = self.op("MatMul", [weights, v], (batch, heads, queries, size), name="context")
        return self.reshape(self.transpose(context, (0, 2, 1, 3)), (batch, queries, width))

    def fused_attention(self, q: str, k: str, v: str, heads: int, kv_heads: int, mask: str | None = None) -> str:
        """Causal attention in one operator on ``[B, S, H*d]``: scores stay on the chip. Counts the full square."""
        inputs = [q, k, v, *([mask] if mask else [])]
        attrs: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": kv_heads, "is_causal": 1}
        return self.op("Attention", inputs, self.shape(q), name="attention", **attrs)

    def rotary(self, x: str, heads: int, rows: int, positions: str, name: str) -> str:
        """Rotary position embedding of ``[B, S, H*d]``, from tables of ``rows`` positions."""
        half = self.shape(x)[-1] // heads // 2
        tables = [self.constant(f"{name}.{part}", (rows, half), "float32") for part in ("cos", "sin")]
        return self.op("RotaryEmbedding", [x, *tables, positions], self.shape(x), name=name, num_heads=heads)
