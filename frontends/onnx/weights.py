"""Which inputs are weights: the slots of COST_MODEL's definition of a parameter.

A constant is a parameter when it feeds a weight, bias, scale, initial-state or table
slot; batch-norm statistics are buffers; quantisation scales, zero points, shapes, axes
and thresholds are neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.frontends.onnx.values import Leaf, Value
from graphcost.ir import Param, ParamKind

# Inputs that hold weights, whatever their size. Positions: the ONNX standard, and
# ContribOperators.md of ONNX Runtime for com.microsoft.
_WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "Conv": (1, 2), "ConvTranspose": (1, 2), "DeformConv": (1, 3), "ConvInteger": (1,),
    "QLinearConv": (3, 8), "Gemm": (0, 1, 2), "MatMul": (0, 1), "MatMulInteger": (0, 1),
    "QLinearMatMul": (0, 3), "BatchNormalization": (1, 2), "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2), "GroupNormalization": (1, 2), "RMSNormalization": (1,),
    "LSTM": (1, 2, 3, 5, 6, 7), "GRU": (1, 2, 3, 5), "RNN": (1, 2, 3, 5), "PRelu": (1,),
    # com.microsoft
    "FusedMatMul": (0, 1), "TransposeMatMul": (0, 1), "FusedGemm": (0, 1, 2), "FusedConv": (1, 2),
    "NhwcConv": (1, 2), "GemmFastGelu": (1, 2), "MultiHeadAttention": (3,), "QAttention": (1, 2),
    "PackedAttention": (1, 2), "PackedMultiHeadAttention": (3,), "DecoderMaskedMultiHeadAttention": (10,),
    "MatMulNBits": (1, 5), "MatMulBnb4": (1,), "MatMulIntegerToFloat": (1, 6), "DynamicQuantizeMatMul": (1, 4),
    "QGemm": (3, 6), "DynamicQuantizeLSTM": (1, 2, 3, 5, 6, 7), "SkipLayerNormalization": (2, 3, 4),
    "SimplifiedLayerNormalization": (1,), "SkipSimplifiedLayerNormalization": (2, 3),
    "EmbedLayerNormalization": (2, 3, 4, 5, 6), "BiasGelu": (1,), "FastGelu": (1,), "BiasAdd": (1,),
    "BiasSplitGelu": (1,), "BiasSoftmax": (1,), "BiasDropout": (1,), "GroupNorm": (1, 2), "SkipGroupNorm": (1, 2, 4),
    "MoE": (2, 3, 4, 5, 6, 7), "QMoE": (2, 4, 5, 7, 8, 10), "GroupQueryAttention": (),
    "RotaryEmbedding": (), "GemmFloat8": (0, 1, 2),
}  # fmt: skip

_MS_ATTENTION = (1, 2)  # com.microsoft.Attention: packed QKV weight and bias; ai.onnx.Attention holds none

_BUFFERS: Mapping[str, tuple[int, ...]] = {"BatchNormalization": (3, 4)}

# Tables: input 0, of floats or of small (quantised) integers; an int32/int64 table is an index table.
_TABLES = frozenset({"Gather", "GatherElements", "GatherND", "GatherBlockQuantized"})
_TABLE_DTYPES = frozenset({"int8", "uint8", "int4", "uint4", "int2", "uint2"})

# Every input is a matrix or a term: any constant of several elements is a weight or a bias.
_GENERIC = frozenset({"Add", "Sub", "Mul", "Div", "Sum", "Concat", "Einsum", "Expand"})

# Standard operators outside the tables hold thresholds, masks or sizes, never weights.

# Their inputs are sizes: the numbers of the result are new.
_SIZES_ONLY = frozenset({"ConstantOfShape", "Range", "EyeLike"})

# Constant arithmetic: the input whose numbers live on in the result.
_PAYLOAD_FIRST = frozenset({
    "DequantizeLinear", "QuantizeLinear", "Reshape", "Slice", "Gather", "Expand", "Tile", "Pad", "Cast",
    "Transpose", "Squeeze", "Unsqueeze", "Identity", "Flatten", "Split", "Clip", "ReduceSum", "CastLike",
})  # fmt: skip


def slot_params(op_type: str, domain: str, index: int, value: Value) -> tuple[Param, ...]:
    """The parameters that input ``index`` of an operator brings; () where it is no such slot."""
    if not value.leaves:
        return ()
    kind = ParamKind.WEIGHT
    if index in _BUFFERS.get(op_type, ()):
        kind = ParamKind.BUFFER
    elif not _is_weight_slot(op_type, domain, index, value):
        return ()
    return tuple(_param(leaf, kind, op_type) for leaf in value.leaves)


def _is_weight_slot(op_type: str, domain: str, index: int, value: Value) -> bool:
    spec = value.spec or value.leaves[0].spec
    if op_type == "Attention":
        return domain == "com.microsoft" and index in _MS_ATTENTION
    if op_type in _TABLES:
        leaf_dtype = value.leaves[0].spec.dtype
        return index == 0 and (value.leaves[0].spec.is_float or leaf_dtype in _TABLE_DTYPES)
    if op_type in _WEIGHTS:
        return index in _WEIGHTS[op_type]
    if op_type in _GENERIC or domain not in ("", "com.microsoft"):
        leaf = value.leaves[0]
        return spec.is_float and (leaf.trained or (spec.numel > 1 and leaf.numel > 1))
    return False


def _param(leaf: Leaf, kind: ParamKind, op_type: str) -> Param:
    return Param(leaf.name, leaf.spec, leaf.numel, leaf.stored_bytes, kind, kind is ParamKind.WEIGHT)


def nbits_param(leaf: Leaf, k: int, n: int) -> Param:
    """A MatMulNBits weight: ``k * n`` weights in the leaf's packed bytes."""
    return Param(leaf.name, leaf.spec, k * n, leaf.stored_bytes)


def folded_leaves(op_type: str, inputs: tuple[Value | None, ...]) -> tuple[Leaf, ...]:
    """Stored tensors whose numbers a constant operator's result still carries.

    Scales and zero points do not count: of an integer tensor and a float factor
    (a dequantisation written out), the integers are the weight.
    """
    present = [value for value in inputs if value is not None and value.leaves]
    if not present or op_type in _SIZES_ONLY:
        return ()
    if op_type in _PAYLOAD_FIRST:
        return inputs[0].leaves if inputs and inputs[0] is not None else ()
    candidates = [value for value in present if (value.spec or value.leaves[0].spec).numel > 1]
    if len(present) > 1 and op_type in {"Mul", "Div", "Sub", "Add"}:
        integers = [v for v in candidates if not v.leaves[0].spec.is_float]
        candidates = integers or candidates
    merged = {leaf.name: leaf for value in (candidates or present[:1]) for leaf in value.leaves}
    return tuple(merged.values())
