"""Pooling: one FLOP per element of each window; backward scatters into the windows."""

from __future__ import annotations

from math import prod

from graphcost.ir import OpCost, OpNode
from graphcost.ops._backward import no_gradient, saved_bytes
from graphcost.ops._conventions import POOL
from graphcost.ops._rule import BackwardRule, OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import attr_int, attr_ints, rank_at_least, shape_error


def _window(node: OpNode) -> int:
    x = rank_at_least(node, node.require(0), 3, "the input")
    if node.op_type.startswith(("Global", "QLinearGlobal")):
        return prod(x) // max(1, node.out.numel)
    kernel = attr_ints(node, "kernel_shape")
    if kernel is None:
        raise LookupError(f"{node.name} ({node.kind}): attribute 'kernel_shape' is missing")
    if len(kernel) != len(x) - 2:
        raise shape_error(node, f"kernel_shape has {len(kernel)} axes, but the input has {len(x) - 2} spatial ones")
    return prod(kernel)


def _pool_backward(saves: tuple[str, ...] = (), whole_window: bool = True) -> BackwardRule:
    """dX is written whole; averages add into every window element, maxima into one."""

    def backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
        if 0 not in wrt:
            return OpCost()
        out = node.out
        flops = POOL * out.numel * (_window(node) if whole_window else 1)
        return OpCost(0, flops, out.size_bytes + saved_bytes(node, saves), node.require(0).size_bytes)

    return backward


def pool(node: OpNode) -> OpCost:
    """``[N, C, *] -> [N, C, *]``: one FLOP per window element; padding counts.

    Source: ONNX AveragePool-22, MaxPool-22, LpPool-22, Global*Pool.
    """
    return traffic(node, elementwise_flops=POOL * node.out.numel * _window(node))


rule("AveragePool", "GlobalAveragePool", op_class=OpClass.POOL, backward=_pool_backward())(pool)
rule(
    "MaxPool",
    "GlobalMaxPool",
    op_class=OpClass.POOL,
    backward=_pool_backward(("indices",), whole_window=False),
    saves=("in0", "indices"),
)(pool)
rule(
    "LpPool",
    "GlobalLpPool",
    op_class=OpClass.POOL,
    backward=_pool_backward(("in0", "out0")),
    saves=("in0", "out0"),
)(pool)
rule(
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
    domain="com.microsoft",
    op_class=OpClass.POOL,
    backward=no_gradient,
)(pool)


def _regions(node: OpNode, samples: int, *region_inputs: int) -> OpCost:
    """``samples`` points per output element; no more of the input is read than it has."""
    x, out = node.require(0), node.out
    points_bytes = read_bytes(out) * samples
    read = min(x.size_bytes, points_bytes) + read_bytes(*(node.spec(i) for i in region_inputs))
    return OpCost(0, POOL * samples * out.numel, read, read_bytes(*node.outputs))


@rule(
    "MaxRoiPool",
    op_class=OpClass.POOL,
    backward=_pool_backward(("in0", "out0"), whole_window=False),
    saves=("in0", "out0"),
)
def max_roi_pool(node: OpNode) -> OpCost:
    """X ``[N, C, H, W]``, rois ``[R, 5] -> [R, C, *pooled]``.

    assumed: one point per output element, since a bin's size depends on the data.
    Source: ONNX MaxRoiPool-22.
    """
    return _regions(node, 1, 1)


@rule("RoiAlign", op_class=OpClass.POOL, backward=_pool_backward((), whole_window=False), saves=("in1",))
def roi_align(node: OpNode) -> OpCost:
    """X ``[N, C, H, W]``, rois ``[R, 4]``: sampling_ratio^2 points a bin; interpolating is a gather.

    assumed: 2 x 2 points where sampling_ratio is 0 (adaptive). Source: ONNX RoiAlign-22.
    """
    ratio = attr_int(node, "sampling_ratio", 0) or 2
    return _regions(node, ratio * ratio, 1, 2)


@rule("MaxUnpool", op_class=OpClass.POOL, backward=_pool_backward(("in1",), whole_window=False), saves=("in1",))
def max_unpool(node: OpNode) -> OpCost:
    """X and indices ``[N, C, *]`` scattered into the output: no FLOPs.

    Source: ONNX MaxUnpool-22.
    """
    return traffic(node)
