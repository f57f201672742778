"""Products, convolutions, pooling, normalisation, tables: operators whose layout or inputs differ from ONNX's.

Channels-last tensors are presented channels first, weights output channels first, so
that the rules apply; nothing is moved.
"""

from __future__ import annotations

from typing import Any

from graphcost.frontends.tensorflow.emit import Op, handles, known
from graphcost.frontends.tensorflow.values import Value
from graphcost.frontends.tensorflow.xla import dot_equation
from graphcost.ir import TensorSpec


def _channels_last(op: Op) -> bool:
    return not op.text("data_format", "NHWC").startswith("NC")


def _channels_first(spec: TensorSpec, last: bool) -> TensorSpec:
    """``[N, *, C]`` as ``[N, C, *]``."""
    if not last or len(spec.shape) < 3:
        return spec
    return TensorSpec((spec.shape[0], spec.shape[-1], *spec.shape[1:-1]), spec.dtype)


def _spatial(listed: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """The spatial entries of a per-axis attribute."""
    return listed[1:-1] if last else listed[2:]


def _geometry(op: Op, last: bool) -> dict[str, Any]:
    padding = op.text("padding")
    attrs: dict[str, Any] = {"strides": _spatial(op.ints("strides"), last)}
    if op.ints("dilations"):
        attrs["dilations"] = _spatial(op.ints("dilations"), last)
    if padding == "EXPLICIT":
        both = op.ints("explicit_paddings")
        attrs["pads"] = _spatial(both[::2], last) + _spatial(both[1::2], last)
    else:
        attrs["auto_pad"] = {"SAME": "SAME_UPPER"}.get(padding, padding)
    return attrs


@handles("Conv2D", "Conv3D", "Conv", "_FusedConv2D")
def _conv(op: Op) -> None:
    """Filter ``[*k, C/g, M]``; groups follow from the channels."""
    last = _channels_last(op)
    x = _channels_first(known(op.input(0).spec, op.name), last)
    *kernel, per_group, filters = op.shape(1)
    weight = TensorSpec((filters, per_group, *kernel), known(op.input(1).spec, op.name).dtype)
    op.emit(
        "Conv", op.inputs[:3], specs={0: x, 1: weight}, outputs=[_channels_first(op.out, last)],
        group=x.shape[1] // max(1, per_group), kernel_shape=tuple(kernel), **_geometry(op, last),
    )  # fmt: skip


@handles("DepthwiseConv2dNative")
def _depthwise(op: Op) -> None:
    """Filter ``[*k, C, multiplier]``: every channel is a group."""
    last = _channels_last(op)
    *kernel, channels, multiplier = op.shape(1)
    weight = TensorSpec((channels * multiplier, 1, *kernel), known(op.input(1).spec, op.name).dtype)
    op.emit(
        "Conv", op.inputs[:2], specs={0: _channels_first(known(op.input(0).spec, op.name), last), 1: weight},
        outputs=[_channels_first(op.out, last)], group=channels, kernel_shape=tuple(kernel), **_geometry(op, last),
    )  # fmt: skip


@handles("Conv2DBackpropInput", "Conv2DBackpropInputV2", "Conv3DBackpropInputV2")
def _conv_transpose(op: Op) -> None:
    """Sizes, filter ``[*k, M, C]``, x: the layer that frameworks call transposed convolution."""
    last = _channels_last(op)
    *kernel, filters, channels = op.shape(1)
    weight = TensorSpec((channels, filters, *kernel), known(op.input(1).spec, op.name).dtype)
    x = _channels_first(known(op.input(2).spec, op.name), last)
    op.emit(
        "ConvTranspose", [op.input(2), op.input(1)], specs={0: x, 1: weight},
        outputs=[_channels_first(op.out, last)], group=1, kernel_shape=tuple(kernel), **_geometry(op, last),
    )  # fmt: skip


@handles("DepthwiseConv2dNativeBackpropInput")
def _depthwise_transpose(op: Op) -> None:
    """Sizes, filter ``[*k, C, multiplier]``, x ``[N, *, C * multiplier]``."""
    last = _channels_last(op)
    *kernel, channels, multiplier = op.shape(1)
    weight = TensorSpec((channels * multiplier, 1, *kernel), known(op.input(1).spec, op.name).dtype)
    x = _channels_first(known(op.input(2).spec, op.name), last)
    op.emit(
        "ConvTranspose", [op.input(2), op.input(1)], specs={0: x, 1: weight},
        outputs=[_channels_first(op.out, last)], group=channels, kernel_shape=tuple(kernel), **_geometry(op, last),
    )  # fmt: skip


@handles("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter")
def _conv_filter_gradient(op: Op) -> None:
    """x, filter sizes, gradient ``[N, *, M]``: the products of the convolution itself, summed over positions."""
    last = _channels_last(op)
    *kernel, per_group, filters = op.out.shape
    x = _channels_first(known(op.input(0).spec, op.name), last)
    if op.node.op.startswith("Depthwise"):
        per_group, filters = 1, per_group * filters
    op.emit(
        "Conv", [op.input(0), None], specs={0: x, 1: TensorSpec((filters, per_group, *kernel), op.out.dtype)},
        outputs=[_channels_first(known(op.input(2).spec, op.name), last)], group=x.shape[1] // max(1, per_group),
        kernel_shape=tuple(kernel), **_geometry(op, last),
    )  # fmt: skip


@handles("MatMul", "_FusedMatMul")
def _matmul(op: Op) -> None:
    """``[m, k] @ [k, n]``, either transposed; a fused bias at input 2."""
    left, right = op.flag("transpose_a"), op.flag("transpose_b")
    if left or right or len(op.inputs) > 2:
        op.emit("Gemm", op.inputs[:3], transA=int(left), transB=int(right))
    else:
        op.emit("MatMul", op.inputs[:2])


@handles("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(op: Op) -> None:
    """``[*, m, k] @ [*, k, n]``, either adjoint."""
    left, right = op.flag("adj_x"), op.flag("adj_y")
    if left or right:
        op.emit("FusedMatMul", op.inputs[:2], domain="com.microsoft", transA=int(left), transB=int(right))
    else:
        op.emit("MatMul", op.inputs[:2])


@handles("Einsum")
def _einsum(op: Op) -> None:
    op.emit("Einsum", op.inputs, equation=op.text("equation"))


@handles("XlaDotV2", "XlaDot")
def _xla_dot(op: Op) -> None:
    """A general dot product, written in index notation."""
    equation = dot_equation(op.node.attr["dimension_numbers"].s, len(op.shape(0)), len(op.shape(1)))
    op.emit("Einsum", op.inputs[:2], equation=equation)


@handles("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "_FusedBatchNormEx")
def _batch_norm(op: Op) -> None:
    """x, scale, offset, mean, variance; the statistics for training are no outputs of inference."""
    last = _channels_last(op)
    x = _channels_first(known(op.input(0).spec, op.name), last)
    op.emit(
        "BatchNormalization", op.inputs[:5], specs={0: x}, outputs=[_channels_first(op.out, last)],
        epsilon=float(op.node.attr["epsilon"].f), training_mode=int(op.flag("is_training")),
    )  # fmt: skip


@handles("BatchNormWithGlobalNormalization")
def _old_batch_norm(op: Op) -> None:
    """TF 0: t, mean, variance, beta, gamma."""
    t, mean, variance, beta, gamma = op.inputs[:5]
    x = _channels_first(known(t.spec, op.name), True)
    op.emit(
        "BatchNormalization", [t, gamma, beta, mean, variance], specs={0: x},
        outputs=[_channels_first(op.out, True)],
    )  # fmt: skip


@handles("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax")
def _pool(op: Op) -> None:
    """Windows over the spatial axes."""
    last = _channels_last(op)
    x = _channels_first(known(op.input(0).spec, op.name), last)
    op.emit(
        "MaxPool" if op.node.op.startswith("Max") else "AveragePool", op.inputs[:1], specs={0: x},
        outputs=[_channels_first(op.out, last)], kernel_shape=_spatial(op.ints("ksize"), last),
        **_geometry(op, last),
    )  # fmt: skip


@handles("MaxPoolV2")
def _pool_v2(op: Op) -> None:
    """Window and strides as inputs."""
    last = _channels_last(op)
    window = op.input(1).ints
    if window is None:
        raise LookupError(f"{op.name}: the window is not known")
    x = _channels_first(known(op.input(0).spec, op.name), last)
    op.emit(
        "MaxPool", op.inputs[:1], specs={0: x}, outputs=[_channels_first(op.out, last)],
        kernel_shape=_spatial(window, last),
    )  # fmt: skip


@handles("GatherV2", "Gather")
def _gather(op: Op) -> None:
    """Table, indices, axis."""
    axis = op.input(2).ints if len(op.inputs) > 2 else (0,)
    op.emit("Gather", op.inputs[:2], axis=axis[0] if axis else 0)


@handles("ConcatV2")
def _concat(op: Op) -> None:
    """Tensors, then the axis."""
    op.emit("Concat", op.inputs[:-1], axis=_axis(op.inputs[-1]))


@handles("Concat")
def _old_concat(op: Op) -> None:
    """The axis, then tensors."""
    op.emit("Concat", op.inputs[1:], axis=_axis(op.input(0)))


@handles("Pack", "ParallelConcat")
def _pack(op: Op) -> None:
    op.emit("Concat", op.inputs, axis=op.number("axis"))


@handles("Split")
def _split(op: Op) -> None:
    """The axis, then the tensor."""
    op.emit("Split", [op.input(1)], axis=_axis(op.input(0)))


def _axis(value: Value) -> int:
    if not value.ints:
        raise LookupError(f"{value.name}: the axis is not known")
    return value.ints[0]


@handles("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def _cross_entropy(op: Op) -> None:
    """Logits ``[N, C]``: a softmax and a weighted sum over all of it."""
    op.emit("Softmax", op.inputs[:1], outputs=[op.inputs[0].spec], names=[f"{op.name}:softmax"])


@handles("CropAndResize")
def _crop(op: Op) -> None:
    """Image, boxes, box indices: one bilinear sample per output element."""
    x = _channels_first(known(op.input(0).spec, op.name), True)
    op.emit(
        "RoiAlign", op.inputs[:3], specs={0: x}, outputs=[_channels_first(op.out, True)], sampling_ratio=1
    )  # fmt: skip


@handles("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionV2")
def _suppression(op: Op) -> None:
    """Boxes ``[N, 4]``, scores ``[N]``; how many remain depends on data, at most all of them do."""
    scores = known(op.input(1).spec, op.name)
    most = op.input(2).ints
    limit = min(scores.numel, most[0]) if most else scores.numel
    outputs = [TensorSpec((limit,), "int32")]
    op.emit("NonMaxSuppression", op.inputs[:2], outputs=outputs, names=[op.outputs[0].name])
