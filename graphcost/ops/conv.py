"""Convolutions of any spatial rank, with groups and dilation."""

from __future__ import annotations

from math import prod

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._backward import FlopsOf, contraction_backward, copy_backward, no_gradient
from graphcost.ops._conventions import REDUCTION, TRANSCENDENTAL, activation_flops
from graphcost.ops._rule import OpClass, rule, traffic
from graphcost.ops._shapes import attr_int, attr_str, rank_at_least, shape_error
from graphcost.ops.matmul import MICROSOFT, bias_flops


def _conv_flops(x_index: int, w_index: int, channel_axis: int = 1) -> FlopsOf:
    """MACs of a convolution: output elements x input channels per group x kernel points."""

    def flops(node: OpNode) -> int:
        x = rank_at_least(node, node.require(x_index), 3, "the input")
        w = rank_at_least(node, node.require(w_index), 3, "the weight")
        channels = x[-1] if attr_int(node, "channels_last", 0) else x[channel_axis]
        groups = attr_int(node, "group", 1)
        if len(w) != len(x) or channels != w[1] * groups or w[0] % groups:
            raise shape_error(node, f"weight must be [M, {channels}/{groups}, ...] with M a multiple of {groups}")
        return MAC_FLOPS * node.out.numel * w[1] * prod(w[2:])

    return flops


_plain = _conv_flops(0, 1)
_channels_last = _conv_flops(0, 1, channel_axis=-1)
_qlinear = _conv_flops(0, 3)


def _activation(node: OpNode) -> int:
    return activation_flops(attr_str(node, "activation")) * node.out.numel


@rule("Conv", op_class=OpClass.CONV, backward=contraction_backward(_plain, adds=(2,)), saves=("in0?1", "in1?0"))
def conv(node: OpNode) -> OpCost:
    """``[N, C, *] * [M, C/g, *k] -> [N, M, *]``: one MAC per output element, C/g and kernel point.

    Padding positions count. Source: ONNX Conv-22.
    """
    return traffic(node, matmul_flops=_plain(node), elementwise_flops=bias_flops(node, 2))


@rule("ConvInteger", op_class=OpClass.CONV, backward=no_gradient)
def conv_integer(node: OpNode) -> OpCost:
    """Conv over integers; zero points at inputs 2 and 3.

    Source: ONNX ConvInteger-10.
    """
    return traffic(node, matmul_flops=_plain(node))


@rule("QLinearConv", op_class=OpClass.CONV, backward=no_gradient)
@rule("QLinearConv", domain=MICROSOFT, op_class=OpClass.CONV, backward=no_gradient)
def qlinear_conv(node: OpNode) -> OpCost:
    """x at input 0, w at 3, bias at 8; requantising takes one FLOP per output element.

    Source: ONNX QLinearConv-10; com.microsoft.QLinearConv adds ``channels_last``.
    """
    extra = node.out.numel + bias_flops(node, 8)
    return traffic(node, matmul_flops=_qlinear(node), elementwise_flops=extra)


@rule(
    "FusedConv",
    domain=MICROSOFT,
    op_class=OpClass.CONV,
    backward=contraction_backward(_plain, adds=(2, 3), activation=_activation),
    saves=("in0?1", "in1?0", "out0"),
)
def fused_conv(node: OpNode) -> OpCost:
    """Conv, bias at 2, residual at 3, activation.

    Source: com.microsoft.FusedConv (ONNX Runtime contrib operators).
    """
    extra = bias_flops(node, 2, 3) + _activation(node)
    return traffic(node, matmul_flops=_plain(node), elementwise_flops=extra)


@rule(
    "NhwcConv",
    "NhwcFusedConv",
    domain=MICROSOFT,
    op_class=OpClass.CONV,
    backward=contraction_backward(_channels_last, adds=(2, 3), activation=_activation),
    saves=("in0?1", "in1?0", "out0"),
)
def nhwc_conv(node: OpNode) -> OpCost:
    """``[N, *, C] * [M, C/g, *k] -> [N, *, M]``.

    Source: com.microsoft.NhwcConv and NhwcFusedConv (ONNX Runtime contrib operators).
    """
    extra = bias_flops(node, 2, 3) + _activation(node)
    return traffic(node, matmul_flops=_channels_last(node), elementwise_flops=extra)


def _transpose_flops(node: OpNode) -> int:
    x = rank_at_least(node, node.require(0), 3, "the input")
    w = rank_at_least(node, node.require(1), 3, "the weight")
    if len(w) != len(x) or w[0] != x[1] or x[1] % attr_int(node, "group", 1):
        raise shape_error(node, f"weight must be [{x[1]}, M/group, ...]")
    return MAC_FLOPS * prod(x) * w[1] * prod(w[2:])


@rule(
    "ConvTranspose",
    op_class=OpClass.CONV,
    backward=contraction_backward(_transpose_flops, adds=(2,)),
    saves=("in0?1", "in1?0"),
)
@rule(
    "ConvTransposeWithDynamicPads",
    domain=MICROSOFT,
    op_class=OpClass.CONV,
    backward=contraction_backward(_transpose_flops, adds=(3,)),
    saves=("in0?1", "in1?0"),
)
def conv_transpose(node: OpNode) -> OpCost:
    """``[N, C, *] * [C, M/g, *k]``: one MAC per *input* element, M/g and kernel point.

    Source: ONNX ConvTranspose-22 (the gradient of Conv with respect to its input).
    """
    bias = 2 if not node.domain else 3  # with dynamic pads, input 2 holds them
    return traffic(node, matmul_flops=_transpose_flops(node), elementwise_flops=bias_flops(node, bias))


def _deform_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    cost = contraction_backward(_plain, adds=(3,))(node, wrt)
    for index in sorted(wrt & {2, 4}):  # offset and mask see the gradient of the sampled input
        spec = node.require(index)
        cost += OpCost(0, spec.numel, node.require(0).size_bytes + spec.size_bytes, spec.size_bytes)
    return cost


@rule("DeformConv", op_class=OpClass.CONV, backward=_deform_backward, saves=("inputs",))
def deform_conv(node: OpNode) -> OpCost:
    """X, W, offset, B, mask: Conv's MACs; sampling the input is a gather and counts no FLOPs.

    Source: ONNX DeformConv-22 (arXiv:1703.06211, arXiv:1811.11168).
    """
    return traffic(node, matmul_flops=_plain(node), elementwise_flops=bias_flops(node, 3))


@rule("Col2Im", op_class=OpClass.REDUCE, backward=copy_backward)
def col2im(node: OpNode) -> OpCost:
    """``[N, C * prod(block), L] -> [N, C, *image]``: overlapping columns add, one FLOP per input element.

    Source: ONNX Col2Im-18.
    """
    return traffic(node, elementwise_flops=REDUCTION * node.require(0).numel)


def _causal_flops(node: OpNode) -> int:
    channels = rank_at_least(node, node.require(0), 3, "the input")[1]
    weight = rank_at_least(node, node.require(1), 3, "the weight")
    if weight[:2] != (channels, 1):
        raise shape_error(node, f"weight must be [{channels}, 1, k]")
    return MAC_FLOPS * node.out.numel * weight[2]


@rule(
    "CausalConvWithState",
    op_class=OpClass.DEPTHWISE,
    backward=contraction_backward(_causal_flops, adds=(2,)),
    saves=("in0?1", "in1?0"),
)
def causal_conv(node: OpNode) -> OpCost:
    """``[B, C, L] * [C, 1, k] -> [B, C, L]``, depthwise; the carried state takes part as input.

    Source: ONNX CausalConvWithState-27.
    """
    extra = bias_flops(node, 2)
    if attr_str(node, "activation", "none") != "none":
        extra += TRANSCENDENTAL * node.out.numel
    return traffic(node, matmul_flops=_causal_flops(node), elementwise_flops=extra)


def is_depthwise(node: OpNode) -> bool:
    """Whether each group of a convolution sees one input channel: it is then bound by memory."""
    groups = attr_int(node, "group", 1)
    if groups <= 1:
        return False
    weight = node.require(3 if node.op_type == "QLinearConv" else 1).shape
    per_group = weight[0] // groups if node.op_type.startswith("ConvTranspose") else weight[1]
    return per_group == 1
