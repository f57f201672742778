"""Matrix products: MatMul, Gemm, their integer forms, and the fused forms of ONNX Runtime."""

from __future__ import annotations

from math import prod

from graphcost.ir import MAC_FLOPS, OpCost, OpNode, TensorSpec
from graphcost.ops._backward import contraction_backward, no_gradient
from graphcost.ops._conventions import activation_flops, pointwise_flops
from graphcost.ops._rule import OpClass, rule, traffic
from graphcost.ops._shapes import Shape, attr_int, attr_str, broadcast, rank_exactly, shape_error

MICROSOFT = "com.microsoft"


def product_flops(node: OpNode, lhs: Shape, rhs: Shape) -> int:
    """FLOPs of ``[*, m, k] @ [*, k, n]`` with numpy's leading axes; raises ``ShapeError``."""
    if not lhs or not rhs:
        raise shape_error(node, "an operand is a scalar, but a matrix product needs one axis or more")
    lhs = (1, *lhs) if len(lhs) == 1 else lhs
    rhs = (*rhs, 1) if len(rhs) == 1 else rhs
    if lhs[-1] != rhs[-2]:
        raise shape_error(node, f"inner sizes differ, {lhs[-1]} != {rhs[-2]}")
    batch = broadcast(node, [lhs[:-2], rhs[:-2]])
    return MAC_FLOPS * prod(batch) * lhs[-2] * rhs[-1] * lhs[-1]


def transposed(shape: Shape, swap: bool, swap_batch: bool = False) -> Shape:
    """The shape a product sees: ``swap_batch`` moves axis 0 behind the batch axes, ``swap`` the last two."""
    if swap_batch and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if swap and len(shape) > 1 else shape


def bias_flops(node: OpNode, *indices: int) -> int:
    """One FLOP per output element for each of the inputs ``indices`` that is there."""
    return sum(node.out.numel for index in indices if node.spec(index) is not None)


def _matmul_flops(node: OpNode) -> int:
    return product_flops(node, node.require(0).shape, node.require(1).shape)


@rule("MatMul", op_class=OpClass.MATMUL, backward=contraction_backward(_matmul_flops), saves=("in0?1", "in1?0"))
def matmul(node: OpNode) -> OpCost:
    """``[*, m, k] @ [*, k, n] -> [*, m, n]``: one MAC per output element and k.

    Source: ONNX MatMul-13 (numpy.matmul semantics, leading axes broadcast).
    """
    return traffic(node, matmul_flops=_matmul_flops(node))


@rule("MatMulInteger", op_class=OpClass.MATMUL, backward=no_gradient)
@rule("MatMulInteger16", op_class=OpClass.MATMUL, backward=no_gradient, domain=MICROSOFT)
def matmul_integer(node: OpNode) -> OpCost:
    """``[*, m, k] @ [*, k, n]`` over integers, zero points folded into the product.

    Source: ONNX MatMulInteger-10; com.microsoft.MatMulInteger16.
    """
    return traffic(node, matmul_flops=_matmul_flops(node))


@rule("QLinearMatMul", op_class=OpClass.MATMUL, backward=no_gradient)
def qlinear_matmul(node: OpNode) -> OpCost:
    """a ``[*, m, k]`` at input 0, b ``[*, k, n]`` at 3; requantising takes one FLOP per output element.

    Source: ONNX QLinearMatMul-21.
    """
    flops = product_flops(node, node.require(0).shape, node.require(3).shape)
    return traffic(node, matmul_flops=flops, elementwise_flops=node.out.numel)


def gemm_flops(node: OpNode, lhs: TensorSpec, rhs: TensorSpec) -> int:
    """FLOPs of ``op(A) @ op(B)`` for matrices under ``transA`` and ``transB``; raises ``ShapeError``."""
    left = transposed(rank_exactly(node, lhs, 2, "A"), bool(attr_int(node, "transA", 0)))
    right = transposed(rank_exactly(node, rhs, 2, "B"), bool(attr_int(node, "transB", 0)))
    return product_flops(node, left, right)


def _gemm_flops(node: OpNode) -> int:
    return gemm_flops(node, node.require(0), node.require(1))


def _activation(node: OpNode) -> int:
    return activation_flops(attr_str(node, "activation")) * node.out.numel


@rule(
    "Gemm",
    op_class=OpClass.MATMUL,
    backward=contraction_backward(_gemm_flops, adds=(2,)),
    saves=("in0?1", "in1?0"),
)
def gemm(node: OpNode) -> OpCost:
    """``alpha * op(A)[m, k] @ op(B)[k, n] + beta * C``; the scalars ride in the product's epilogue.

    Source: ONNX Gemm-13.
    """
    return traffic(node, matmul_flops=_gemm_flops(node), elementwise_flops=bias_flops(node, 2))


@rule(
    "FusedGemm",
    domain=MICROSOFT,
    op_class=OpClass.MATMUL,
    backward=contraction_backward(_gemm_flops, adds=(2,), activation=_activation),
    saves=("in0?1", "in1?0", "out0"),
)
def fused_gemm(node: OpNode) -> OpCost:
    """Gemm with an activation on its output.

    Source: com.microsoft.FusedGemm (ONNX Runtime contrib operators).
    """
    extra = bias_flops(node, 2) + _activation(node)
    return traffic(node, matmul_flops=_gemm_flops(node), elementwise_flops=extra)


def _fused_flops(node: OpNode) -> int:
    left = transposed(
        node.require(0).shape, bool(attr_int(node, "transA", 0)), bool(attr_int(node, "transBatchA", 0))
    )
    right = transposed(
        node.require(1).shape, bool(attr_int(node, "transB", 0)), bool(attr_int(node, "transBatchB", 0))
    )
    return product_flops(node, left, right)


@rule(
    "FusedMatMul",
    "TransposeMatMul",
    "FusedMatMulActivation",
    domain=MICROSOFT,
    op_class=OpClass.MATMUL,
    backward=contraction_backward(_fused_flops, activation=_activation),
    saves=("in0?1", "in1?0"),
)
def fused_matmul(node: OpNode) -> OpCost:
    """MatMul of operands transposed on the fly (``transA``, ``transBatchA``, ...).

    Source: com.microsoft.FusedMatMul (ONNX Runtime contrib operators).
    """
    return traffic(node, matmul_flops=_fused_flops(node), elementwise_flops=_activation(node))


def _fast_gelu(node: OpNode) -> int:
    return pointwise_flops("FastGelu") * node.out.numel


@rule(
    "GemmFastGelu",
    domain=MICROSOFT,
    op_class=OpClass.MATMUL,
    backward=contraction_backward(_matmul_flops, adds=(2,), activation=_fast_gelu),
    saves=("in0?1", "in1?0", "out0"),
)
def gemm_fast_gelu(node: OpNode) -> OpCost:
    """MatMul, bias, tanh-approximated GELU.

    Source: com.microsoft.GemmFastGelu (ONNX Runtime contrib operators).
    """
    extra = bias_flops(node, 2) + _fast_gelu(node)
    return traffic(node, matmul_flops=_matmul_flops(node), elementwise_flops=extra)
