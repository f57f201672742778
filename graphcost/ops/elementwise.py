"""Pointwise operators: activations, arithmetic, comparison, logic, their fused forms.

FLOPs per output element come from :mod:`graphcost.ops._conventions`. What backward
keeps decides the group an operator is registered in.
"""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._backward import (
    copy_backward,
    difference_backward,
    no_gradient,
    pointwise_backward,
    product_backward,
    sum_backward,
)
from graphcost.ops._conventions import ROTARY, pointwise_flops
from graphcost.ops._rule import BackwardRule, OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import rank_at_least

MICROSOFT = "com.microsoft"


def _pointwise(*op_types: str, backward: BackwardRule, saves: tuple[str, ...] = (), domain: str = "") -> None:
    rule(*op_types, op_class=OpClass.POINTWISE, backward=backward, saves=saves, domain=domain)(pointwise)


def pointwise(node: OpNode) -> OpCost:
    """Any shapes, broadcast to the output's: the convention's FLOPs per output element.

    Source: ONNX operator schemas (element-wise operators, numpy broadcasting).
    """
    return traffic(node, elementwise_flops=pointwise_flops(node.op_type) * node.out.numel)


_FROM_OUTPUT = ("Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Reciprocal", "Elu", "Selu", "Tan")
_FROM_INPUT = (
    "LeakyRelu", "ThresholdedRelu", "Celu", "Gelu", "Mish", "Swish", "HardSigmoid", "HardSwish", "Softplus",
    "Softsign", "Shrink", "Clip", "Erf", "Log", "Abs", "Sin", "Cos", "Asin", "Acos", "Atan", "Sinh", "Cosh",
    "Asinh", "Acosh", "Atanh",
)  # fmt: skip
_SUMS = ("Add", "Sum")
_LINEAR = ("Mean", "Neg")
_NO_GRADIENT = (
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitShift", "IsInf", "IsNaN",
    "Ceil", "Floor", "Round", "Sign",  # derivative zero almost everywhere
)  # fmt: skip

_pointwise(*_FROM_OUTPUT, backward=pointwise_backward(("out0",)), saves=("out0",))
_pointwise(*_FROM_INPUT, backward=pointwise_backward(("in0",)), saves=("in0",))
_pointwise(*_SUMS, backward=sum_backward)
_pointwise("Sub", backward=difference_backward)
_pointwise(*_LINEAR, backward=pointwise_backward())
_pointwise(*_NO_GRADIENT, backward=no_gradient)
_pointwise("Mul", backward=product_backward, saves=("in0?1", "in1?0"))
_pointwise("Div", backward=pointwise_backward(("inputs",)), saves=("in0?1", "in1?0"))
_pointwise(
    "Pow", "Mod", "PRelu", "SwiGLU", "Max", "Min",
    backward=pointwise_backward(("inputs",)), saves=("inputs",),
)  # fmt: skip
_pointwise("Where", backward=pointwise_backward(("in0",)), saves=("in0",))
_pointwise("Cast", "CastLike", backward=copy_backward)
_pointwise("Gelu", "QuickGelu", domain=MICROSOFT, backward=pointwise_backward(("in0",)), saves=("in0",))
_pointwise("BiasGelu", "BiasSplitGelu", domain=MICROSOFT, backward=pointwise_backward(("inputs",)), saves=("inputs",))
_pointwise("BiasAdd", domain=MICROSOFT, backward=pointwise_backward())


@rule(
    "FastGelu",
    domain=MICROSOFT,
    op_class=OpClass.POINTWISE,
    backward=pointwise_backward(("in0",)),
    saves=("in0",),
)
def fast_gelu(node: OpNode) -> OpCost:
    """X of any shape, a bias at input 1 where there is one.

    Source: com.microsoft.FastGelu (ONNX Runtime contrib operators).
    """
    each = pointwise_flops("FastGelu") + (node.spec(1) is not None)
    return traffic(node, elementwise_flops=each * node.out.numel)


@rule("Dropout", op_class=OpClass.POINTWISE, backward=pointwise_backward(("mask",)), saves=("mask",))
def dropout(node: OpNode) -> OpCost:
    """Data of any shape: one product per element.

    assumed: active, as in training; exporters remove it for inference.
    Source: ONNX Dropout-22.
    """
    return traffic(node, elementwise_flops=node.out.numel)


def _bias_dropout_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    return pointwise_backward(("mask",), 1)(node, wrt & {0, 1, 2})


@rule(
    "BiasDropout",
    "BitmaskBiasDropout",
    domain=MICROSOFT,
    op_class=OpClass.POINTWISE,
    backward=_bias_dropout_backward,
    saves=("mask",),
)
def bias_dropout(node: OpNode) -> OpCost:
    """``dropout(data + bias) + residual``: one FLOP per element and step.

    Source: com.microsoft.BiasDropout (ONNX Runtime contrib operators).
    """
    steps = 2 + (node.spec(2) is not None)
    return traffic(node, elementwise_flops=steps * node.out.numel)


@rule(
    "BitmaskDropout",
    domain=MICROSOFT,
    op_class=OpClass.POINTWISE,
    backward=pointwise_backward(("mask",)),
    saves=("mask",),
)
def bitmask_dropout(node: OpNode) -> OpCost:
    """Dropout with its mask packed in bits.

    Source: com.microsoft.BitmaskDropout (ONNX Runtime contrib operators).
    """
    return traffic(node, elementwise_flops=node.out.numel)


def _rotary(node: OpNode, caches: tuple[int, int], ids: int) -> OpCost:
    rank_at_least(node, node.require(0), 3, "the input")
    positions = node.spec(ids)
    read = read_bytes(node.require(0), positions)
    for index in caches:
        cache = node.require(index)
        touched = cache.size_bytes
        if positions is not None and cache.shape and cache.shape[0] > positions.numel > 1:
            touched = touched * positions.numel // cache.shape[0]  # one row per position
        read += touched
    return OpCost(0, ROTARY * node.out.numel, read, read_bytes(*node.outputs))


@rule("RotaryEmbedding", op_class=OpClass.POINTWISE, backward=pointwise_backward((), ROTARY))
def rotary(node: OpNode) -> OpCost:
    """X ``[B, S, H]`` or ``[B, N, S, D]``, cos and sin caches ``[P, D/2]``, position ids ``[B, S]``.

    Source: ONNX RotaryEmbedding-23 (arXiv:2104.09864).
    """
    return _rotary(node, caches=(1, 2), ids=3)


@rule(
    "RotaryEmbedding",
    domain=MICROSOFT,
    op_class=OpClass.POINTWISE,
    backward=pointwise_backward((), ROTARY),
)
def rotary_microsoft(node: OpNode) -> OpCost:
    """As the standard's, with position ids before the caches.

    Source: com.microsoft.RotaryEmbedding (ONNX Runtime contrib operators).
    """
    return _rotary(node, caches=(2, 3), ids=1)
