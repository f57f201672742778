"""Quantising, dequantising, and products with low-bit operands (mostly domain com.microsoft)."""

from __future__ import annotations

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._backward import FlopsOf, contraction_backward, no_gradient
from graphcost.ops._conventions import POINTWISE, REDUCTION, SOFTMAX, pointwise_flops
from graphcost.ops._rule import OpClass, rule, traffic
from graphcost.ops._shapes import attr_int, rank_at_least, shape_error
from graphcost.ops.matmul import bias_flops, gemm_flops, product_flops

MICROSOFT = "com.microsoft"


@rule("QuantizeLinear", "DequantizeLinear", op_class=OpClass.POINTWISE, backward=no_gradient)
@rule("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT, op_class=OpClass.POINTWISE, backward=no_gradient)
def quantize(node: OpNode) -> OpCost:
    """Any shape, scale and zero point per tensor, axis or block: one FLOP per element.

    Source: ONNX QuantizeLinear-24, DequantizeLinear-24.
    """
    return traffic(node, elementwise_flops=POINTWISE * node.out.numel)


@rule("DynamicQuantizeLinear", op_class=OpClass.REDUCE, backward=no_gradient)
def dynamic_quantize(node: OpNode) -> OpCost:
    """Any shape: minimum, maximum, then quantise.

    Source: ONNX DynamicQuantizeLinear-11.
    """
    return traffic(node, elementwise_flops=(2 * REDUCTION + POINTWISE) * node.require(0).numel)


def _packed_flops(node: OpNode) -> int:
    """``[*, K] @ [K, N]`` where the weight is packed and K and N stand in attributes."""
    inner, columns = attr_int(node, "K"), attr_int(node, "N")
    lhs = rank_at_least(node, node.require(0), 1, "A")
    if lhs[-1] != inner:
        raise shape_error(node, f"A's last axis must be K = {inner}, not {lhs[-1]}")
    return MAC_FLOPS * node.require(0).numel * columns


@rule(
    "MatMulNBits",
    domain=MICROSOFT,
    op_class=OpClass.MATMUL,
    backward=contraction_backward(_packed_flops, adds=(5,)),
    saves=("in0",),
)
@rule(
    "MatMulBnb4",
    domain=MICROSOFT,
    op_class=OpClass.MATMUL,
    backward=contraction_backward(_packed_flops),
    saves=("in0",),
)
def matmul_n_bits(node: OpNode) -> OpCost:
    """A ``[*, K]``, B packed for ``[K, N]``; unpacking and scaling take one FLOP per weight.

    Source: com.microsoft.MatMulNBits and MatMulBnb4 (ONNX Runtime contrib operators).
    """
    weights = attr_int(node, "K") * attr_int(node, "N")
    bias = bias_flops(node, 5) if node.op_type == "MatMulNBits" else 0
    return traffic(node, matmul_flops=_packed_flops(node), elementwise_flops=POINTWISE * weights + bias)


def _product_at(lhs: int, rhs: int) -> FlopsOf:
    return lambda node: product_flops(node, node.require(lhs).shape, node.require(rhs).shape)


@rule("MatMulIntegerToFloat", domain=MICROSOFT, op_class=OpClass.MATMUL, backward=no_gradient)
def matmul_integer_to_float(node: OpNode) -> OpCost:
    """A and B integers, scales at 2 and 3, bias at 6: the product scaled to float.

    Source: com.microsoft.MatMulIntegerToFloat (ONNX Runtime contrib operators).
    """
    extra = POINTWISE * node.out.numel + bias_flops(node, 6)
    return traffic(node, matmul_flops=_product_at(0, 1)(node), elementwise_flops=extra)


@rule("DynamicQuantizeMatMul", domain=MICROSOFT, op_class=OpClass.MATMUL, backward=no_gradient)
def dynamic_quantize_matmul(node: OpNode) -> OpCost:
    """A float, quantised on the fly (minimum, maximum, scaling), B integers, bias at 4.

    Source: com.microsoft.DynamicQuantizeMatMul (ONNX Runtime contrib operators).
    """
    quantising = (2 * REDUCTION + POINTWISE) * node.require(0).numel
    extra = quantising + POINTWISE * node.out.numel + bias_flops(node, 4)
    return traffic(node, matmul_flops=_product_at(0, 1)(node), elementwise_flops=extra)


@rule("QGemm", domain=MICROSOFT, op_class=OpClass.MATMUL, backward=no_gradient)
def qgemm(node: OpNode) -> OpCost:
    """A at input 0, B at 3, C at 6; requantising takes one FLOP per output element.

    Source: com.microsoft.QGemm (ONNX Runtime contrib operators).
    """
    extra = POINTWISE * node.out.numel + bias_flops(node, 6)
    return traffic(node, matmul_flops=gemm_flops(node, node.require(0), node.require(3)), elementwise_flops=extra)


@rule(
    "QLinearAdd",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearLeakyRelu",
    "QLinearWhere",
    "MulInteger",
    domain=MICROSOFT,
    op_class=OpClass.POINTWISE,
    backward=no_gradient,
)
def qlinear_pointwise(node: OpNode) -> OpCost:
    """Integers of any shape: the float operator's FLOPs; rescaling rides along.

    Source: com.microsoft.QLinearAdd and kin (ONNX Runtime contrib operators).
    """
    return traffic(node, elementwise_flops=pointwise_flops(node.op_type) * node.out.numel)


@rule("QLinearSoftmax", domain=MICROSOFT, op_class=OpClass.SOFTMAX, backward=no_gradient)
def qlinear_softmax(node: OpNode) -> OpCost:
    """Integers of any shape, by table: counted as the float operator.

    Source: com.microsoft.QLinearSoftmax (ONNX Runtime contrib operators).
    """
    return traffic(node, elementwise_flops=SOFTMAX * node.require(0).numel)


@rule("QLinearReduceMean", domain=MICROSOFT, op_class=OpClass.REDUCE, backward=no_gradient)
def qlinear_reduce(node: OpNode) -> OpCost:
    """Integers of any shape: one FLOP per input element.

    Source: com.microsoft.QLinearReduceMean (ONNX Runtime contrib operators).
    """
    return traffic(node, elementwise_flops=REDUCTION * node.require(0).numel)


@rule("QLinearConcat", domain=MICROSOFT, op_class=OpClass.COPY, backward=no_gradient)
def qlinear_concat(node: OpNode) -> OpCost:
    """Scale and zero point of the output, then triples (tensor, scale, zero point): one FLOP to rescale.

    Source: com.microsoft.QLinearConcat (ONNX Runtime contrib operators).
    """
    return traffic(node, elementwise_flops=POINTWISE * node.out.numel)
