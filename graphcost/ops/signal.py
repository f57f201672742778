"""Fourier transforms and windows.

assumed: a complex transform of n points takes 5 n log2(n) FLOPs, a real one half
(the radix-2 count that FFT benchmarks use); log2 is rounded up.
"""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._backward import no_gradient
from graphcost.ops._conventions import POINTWISE, TRANSCENDENTAL
from graphcost.ops._rule import OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import attr_int, rank_at_least, shape_error


def fft_flops(points: int, real: bool) -> int:
    """FLOPs of one transform.

    >>> fft_flops(8, real=False), fft_flops(8, real=True)
    (120, 60)
    """
    flops = 5 * points * max(0, points - 1).bit_length()
    return -(-flops // 2) if real else flops


def _dft_axis(node: OpNode, rank: int) -> int:
    if "axis" in node.attrs:  # opset 17; later an input
        return attr_int(node, "axis") % rank
    if known := node.values.get(2):
        return int(known[0]) % rank
    if node.spec(2) is not None:
        raise LookupError(f"{node.name} (DFT): the axis is not known")
    return rank - 2  # the standard's default


def _dft_flops(node: OpNode) -> int:
    shape = rank_at_least(node, node.require(0), 2, "the input")
    if shape[-1] not in (1, 2):
        raise shape_error(node, "the last axis must hold 1 (real) or 2 (complex) numbers")
    points = shape[_dft_axis(node, len(shape))]
    rows = node.require(0).numel // max(1, points * shape[-1])
    if known := node.values.get(1):
        points = int(known[0])
    elif node.spec(1) is not None:
        raise LookupError(f"{node.name} (DFT): the length is not known")
    return rows * fft_flops(points, real=shape[-1] == 1)


def _dft_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if 0 not in wrt:
        return OpCost()
    return OpCost(0, _dft_flops(node), node.out.size_bytes, node.require(0).size_bytes)


@rule("DFT", op_class=OpClass.REDUCE, backward=_dft_backward)
def dft(node: OpNode) -> OpCost:
    """``[*, n, *, 1 or 2] -> [*, n, *, 2]`` along one axis; backward is the adjoint transform.

    Source: ONNX DFT-20; Frigo and Johnson, "The Design and Implementation of FFTW3", 2005.
    """
    return traffic(node, elementwise_flops=_dft_flops(node))


def _stft_flops(node: OpNode) -> int:
    signal = rank_at_least(node, node.require(0), 2, "the signal")
    batch, frames = rank_at_least(node, node.out, 3, "the output")[:2]
    window = node.spec(2)
    if known := node.values.get(3):
        points = int(known[0])
    elif window is not None:
        points = window.numel
    elif node.spec(3) is not None:
        raise LookupError(f"{node.name} (STFT): the frame length is not known")
    else:
        points = signal[1]
    real = len(signal) < 3 or signal[2] == 1
    weigh = points * (1 if real else 2) if window is not None else 0
    return batch * frames * (fft_flops(points, real) + weigh)


def _stft_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if not wrt:
        return OpCost()
    read = node.out.size_bytes + read_bytes(node.spec(2))
    return OpCost(0, _stft_flops(node), read, sum(node.require(i).size_bytes for i in wrt))


@rule("STFT", op_class=OpClass.REDUCE, backward=_stft_backward, saves=("in2",))
def stft(node: OpNode) -> OpCost:
    """Signal ``[B, L, 1 or 2] -> [B, frames, bins, 2]``: window and transform every frame.

    Source: ONNX STFT-17.
    """
    return traffic(node, elementwise_flops=_stft_flops(node))


@rule("HannWindow", "HammingWindow", op_class=OpClass.POINTWISE, backward=no_gradient)
def cosine_window(node: OpNode) -> OpCost:
    """``[size]``: a cosine, a product and a sum per element.

    Source: ONNX HannWindow-17, HammingWindow-17.
    """
    return traffic(node, elementwise_flops=(TRANSCENDENTAL + 2 * POINTWISE) * node.out.numel)


@rule("BlackmanWindow", op_class=OpClass.POINTWISE, backward=no_gradient)
def blackman_window(node: OpNode) -> OpCost:
    """``[size]``: two cosines, two products and two sums per element.

    Source: ONNX BlackmanWindow-17.
    """
    return traffic(node, elementwise_flops=2 * (TRANSCENDENTAL + 2 * POINTWISE) * node.out.numel)


@rule("MelWeightMatrix", op_class=OpClass.POINTWISE, backward=no_gradient)
def mel_weight_matrix(node: OpNode) -> OpCost:
    """``[bins, mel]``: one FLOP per entry.

    Source: ONNX MelWeightMatrix-17.
    """
    return traffic(node, elementwise_flops=POINTWISE * node.out.numel)
