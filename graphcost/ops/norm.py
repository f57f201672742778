"""Normalisations: five FLOPs per element by convention; residual sums are added.

Backward reads x and dy twice, once for the row sums and the gradients of scale and
shift, once for dx.
"""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._conventions import NORM, NORM_BACKWARD, activation_flops
from graphcost.ops._rule import OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import attr_int, shape_error

MICROSOFT = "com.microsoft"


def norm_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """dx, dscale and dshift in one: the summed input's gradient also serves skip connections."""
    if not wrt:
        return OpCost()
    x = node.require(0)
    small = (spec for spec in node.inputs[1:] if spec is not None and spec.numel < x.numel)
    scale_bytes = max((spec.size_bytes for spec in small), default=0)
    read = 2 * (x.size_bytes + node.out.size_bytes) + scale_bytes
    return OpCost(0, NORM_BACKWARD * x.numel, read, read_bytes(*(node.require(i) for i in wrt)))


@rule(
    "LayerNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "LpNormalization",
    "MeanVarianceNormalization",
    "LRN",
    op_class=OpClass.NORM,
    backward=norm_backward,
    saves=("in0",),
)
@rule(
    "SimplifiedLayerNormalization",
    domain=MICROSOFT,
    op_class=OpClass.NORM,
    backward=norm_backward,
    saves=("in0",),
)
def normalisation(node: OpNode) -> OpCost:
    """x of any shape, scale and shift over the normalised axes.

    Source: ONNX LayerNormalization-17, RMSNormalization-23, GroupNormalization-21 and kin;
    SimplifiedLayerNormalization is ONNX Runtime's name for RMS normalisation.
    """
    return traffic(node, elementwise_flops=NORM * node.require(0).numel)


@rule("BatchNormalization", op_class=OpClass.NORM, backward=norm_backward, saves=("in0",))
def batch_norm(node: OpNode) -> OpCost:
    """x ``[N, C, *]``, scale, shift, running mean and variance ``[C]``.

    Source: ONNX BatchNormalization-15.
    """
    x, scale = node.require(0), node.require(1)
    if len(x.shape) > 1 and scale.numel != x.shape[1]:
        raise shape_error(node, f"scale has {scale.numel} elements, but the input has {x.shape[1]} channels")
    return traffic(node, elementwise_flops=NORM * x.numel)


@rule(
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    domain=MICROSOFT,
    op_class=OpClass.NORM,
    backward=norm_backward,
    saves=("in0",),
)
def skip_norm(node: OpNode) -> OpCost:
    """``norm(input + skip + bias)``; with beta (not in the simplified form) bias is input 4, else 3.

    Source: com.microsoft.SkipLayerNormalization (ONNX Runtime contrib operators).
    """
    bias = 3 if "Simplified" in node.op_type else 4
    sums = 1 + (node.spec(bias) is not None)
    return traffic(node, elementwise_flops=(NORM + sums) * node.require(0).numel)


@rule(
    "GroupNorm",
    "SkipGroupNorm",
    domain=MICROSOFT,
    op_class=OpClass.NORM,
    backward=norm_backward,
    saves=("in0",),
)
def group_norm(node: OpNode) -> OpCost:
    """``[N, H, W, C]`` by groups; ``activation`` 1 is SiLU; skip at input 3, bias at 4.

    Source: com.microsoft.GroupNorm and SkipGroupNorm (ONNX Runtime contrib operators).
    """
    sums = sum(node.spec(index) is not None for index in (3, 4))
    activation = activation_flops("silu") if attr_int(node, "activation", 0) else 0
    return traffic(node, elementwise_flops=(NORM + sums + activation) * node.require(0).numel)


def _embed_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    rows = node.out
    cost = OpCost(0, NORM_BACKWARD * rows.numel, 4 * rows.size_bytes, 0) if wrt else OpCost()
    for index in sorted(wrt):  # tables get the touched rows, scale and shift are written whole
        written = min(rows.size_bytes, node.require(index).size_bytes)
        cost += OpCost(0, rows.numel, 0, written)
    return cost


@rule(
    "EmbedLayerNormalization",
    domain=MICROSOFT,
    op_class=OpClass.NORM,
    backward=_embed_backward,
    saves=("out0",),
)
def embed_norm(node: OpNode) -> OpCost:
    """Ids ``[B, S]`` pick rows of the word, position and segment tables ``[*, H]``, summed and normalised.

    Only the touched rows are read. Source: com.microsoft.EmbedLayerNormalization.
    """
    ids, rows = node.require(0), node.out
    tables = 2 + (node.spec(4) is not None)
    touched = sum(
        min(table.size_bytes, rows.size_bytes)
        for table in (node.spec(2), node.spec(3), node.spec(4))
        if table is not None
    )
    small = read_bytes(ids, node.spec(1), *(node.spec(i) for i in range(5, 9)))
    flops = (NORM + tables - 1) * rows.numel
    return OpCost(0, flops, small + touched, read_bytes(*node.outputs))
