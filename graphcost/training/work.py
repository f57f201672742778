"""What a kernel does, in the terms that its efficiency depends on: product sizes, groups, window, layout.

A convolution is the product that an implicit GEMM computes: forward ``[N OH OW, Cin k k] x
[.., Cout]``; the gradient of the input swaps channels; that of the weight sums over the
image. All sizes are those of one group and one trip.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops import OpClass, causal_share, einsum, recurrent
from graphcost.training.views import Laid

SPLIT_BACKWARD = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm"})
"""Operators whose gradients are one kernel an operand, and nothing besides."""

STEM_CHANNELS = 4
"""A convolution of an image: so few input channels fill no matrix unit's K."""


class Part(StrEnum):
    """Which of an operator's kernels: its result, the gradient of its data, its weights, or its bias."""

    FORWARD = "forward"
    DGRAD = "dgrad"
    WGRAD = "wgrad"
    BIAS = "bias"


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel. ``kind`` names its row in the efficiency tables.

    ``m``, ``n``, ``k``: the product it computes ``batch`` times (0: none). ``channels``, ``filters``:
    input and output channels per group. ``window``, ``stride``, ``dilation``: the largest of a
    convolution's axes. ``image_bytes``: a convolution's data and result. ``row_bytes``: what a layer
    norm averages over at once (0: another kernel). ``causal_share``: of an attention's counted square, what
    its kernel works out (None: not causal, all of it). ``steps``: products one after another, each with the
    result of the one before (recurrent layers; directions are the ``batch``).
    """

    kind: str
    part: Part = Part.FORWARD
    m: int = 0
    n: int = 0
    k: int = 0
    batch: int = 1
    groups: int = 1
    channels: int = 0
    window: int = 1
    stride: int = 1
    dilation: int = 1
    channels_last: bool = False
    image_bytes: int = 0
    filters: int = 0
    row_bytes: int = 0
    causal_share: float | None = None
    steps: int = 0


def work_of(op: Laid, part: Part, cost: OpCost | None) -> Work:
    """The kernel of one trip of ``op``; ``cost`` is what that kernel costs."""
    node, op_class = op.node, op.op_class
    if part is Part.BIAS:
        return Work("reduce", part)
    if op_class in (OpClass.CONV, OpClass.DEPTHWISE):
        found = _convolution(op, part)
        return found if found is not None else Work("conv", part)
    if op_class is OpClass.MATMUL:
        return _product(node, part, cost)
    if op_class is OpClass.RECURRENT and node.op_type in recurrent.CELLS and not node.domain:
        return _recurrent(node, part)
    backward = "" if part is Part.FORWARD else "_backward"
    if op_class is OpClass.NORM:
        kind = _norm_kind(node)
        row_bytes = _row_bytes(node) if kind == "layer_norm" else 0
        return Work(kind + backward, part, channels_last=op.channels_last, row_bytes=row_bytes)
    if op_class is OpClass.ATTENTION:
        return Work(f"{op_class}{backward}", part, causal_share=None if cost is None else causal_share(node))
    if op_class is OpClass.SOFTMAX:
        return Work(f"{op_class}{backward}", part)
    if node.op_type == "Cast":
        return Work("cast", part)
    if node.op_type == "Concat":
        return Work("concat", part)
    return Work(str(op_class) if op_class is not None else "unknown", part, channels_last=op.channels_last)


def _norm_kind(node: OpNode) -> str:
    if node.op_type == "BatchNormalization":
        return "batch_norm"
    return "group_norm" if node.op_type in ("GroupNormalization", "InstanceNormalization") else "layer_norm"


def _row_bytes(node: OpNode) -> int:
    """Bytes of one row of a normalisation over the trailing axes."""
    spec = node.spec(0)
    if spec is None or not spec.numel:
        return 0
    axis = int(node.attrs.get("axis", -1))
    return spec.size_bytes // spec.numel * prod(spec.shape[axis:])


def _convolution(op: Laid, part: Part) -> Work | None:
    """None where the operator is not laid out as ONNX's Conv or ConvTranspose."""
    node = op.node
    x, w, y = node.spec(0), node.spec(1), node.outputs[0] if node.outputs else None
    if (
        node.op_type not in ("Conv", "ConvTranspose", "FusedConv", "DeformConv")
        or x is None
        or w is None
        or y is None
    ):
        return None
    if len(w.shape) < 3 or len(x.shape) != len(w.shape) or len(y.shape) != len(w.shape):
        return None
    groups, taps = int(node.attrs.get("group", 1)), prod(w.shape[2:])
    small, large = (y, x) if node.op_type != "ConvTranspose" else (x, y)  # a transposed one is a gradient
    c_in, c_out = large.shape[1] // groups, small.shape[1] // groups
    if node.op_type == "ConvTranspose" and part is not Part.WGRAD:
        part = Part.DGRAD if part is Part.FORWARD else Part.FORWARD
    pixels_in, pixels_out = (s.shape[0] * prod(s.shape[2:]) for s in (large, small))
    m, n, k = {
        Part.FORWARD: (pixels_out, c_out, c_in * taps),
        Part.DGRAD: (pixels_in, c_in, c_out * taps),
        Part.WGRAD: (c_out, c_in * taps, pixels_out),
    }[part]
    stride = max(_ints(node, "strides"), default=1)
    window = max(w.shape[2:])
    return Work(
        _convolution_kind(op, groups, c_in, window, stride),
        part, m, n, k, groups, groups, c_in, window, stride, max(_ints(node, "dilations"), default=1),
        op.channels_last, x.size_bytes + y.size_bytes, c_out,
    )  # fmt: skip


def _convolution_kind(op: Laid, groups: int, c_in: int, window: int, stride: int) -> str:
    strided = "_strided" if stride > 1 else ""
    if op.op_class is OpClass.DEPTHWISE:
        size = next((one for one in (3, 5, 7) if window <= one), 9)
        return f"depthwise_{size}{strided if size < 7 else ''}"
    if groups > 1:
        return "conv_grouped"
    if c_in <= STEM_CHANNELS:
        return "conv_stem"
    return f"conv_1x1{strided}" if window == 1 else f"conv{strided}"


def _ints(node: OpNode, name: str) -> tuple[int, ...]:
    value = node.attrs.get(name) or ()
    return tuple(int(one) for one in value)


def _product(node: OpNode, part: Part, cost: OpCost | None) -> Work:
    """MatMul, Gemm and Einsum of two operands; for others the sizes stay unknown."""
    if cost is None:
        return Work("bmm", part)
    sizes = _einsum_sizes(node) if node.op_type == "Einsum" else _matmul_sizes(node, cost)
    if sizes is None:
        return Work("bmm", part)
    batch, m, n, k = sizes
    shared = batch == 1
    if part is Part.DGRAD:
        n, k = k, n
    elif part is Part.WGRAD:
        m, n, k = k, n, m
    return Work("linear" if shared else "bmm", part, m, n, k, batch)


def _recurrent(node: OpNode, part: Part) -> Work:
    """The product of one step with the state's weights; back in time with their transpose."""
    cell = recurrent.CELLS[node.op_type]
    size = recurrent.sizes(node, cell)
    n, k = cell.gates * size.hidden, size.hidden
    if part is not Part.FORWARD:
        n, k = k, n
    return Work("recurrent", part, size.batch, n, k, size.directions, steps=size.steps)


def _matmul_sizes(node: OpNode, cost: OpCost) -> tuple[int, int, int, int] | None:
    """(batch, m, n, k) of the forward product; leading axes fold into m where the right side is one matrix."""
    right, out = node.spec(1), node.outputs[0] if node.outputs else None
    if right is None or out is None or len(out.shape) < 2 or not out.numel:
        return None
    *batch, m, n = out.shape
    k = cost.matmul_flops // (MAC_FLOPS * out.numel)
    if len(right.shape) <= 2:
        return 1, prod(batch) * m, n, k
    return prod(batch), m, n, k


def _einsum_sizes(node: OpNode) -> tuple[int, int, int, int] | None:
    terms = einsum.parse(node)
    if len(terms.operands) != 2:
        return None
    left, right = terms.operands
    both = left & right
    return (
        terms.points(both & terms.result),
        terms.points((left - right) & terms.result),
        terms.points((right - left) & terms.result),
        terms.points(both - terms.result),
    )
