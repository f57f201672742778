"""FLOPs of recorded contractions, from the shapes of their arguments.

1 multiply-add is 2 FLOPs; attention counts the full square, as everywhere in graphcost. Signatures: PyTorch's
``native_functions.yaml`` (2.6 to 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

Shapes = Sequence[Any]
Texts = Sequence[str]


def _product(left: int) -> Callable[[Shapes, Texts], int]:
    """``[..., m, k] x [..., k, n]`` at arguments ``left`` and ``left + 1``: 2 m k n for each of the batch."""

    def flops(dims: Shapes, _: Texts) -> int:
        return 2 * prod(dims[left]) * int(dims[left + 1][-1])

    return flops


def _vector(dims: Shapes, _: Texts) -> int:
    return 2 * prod(dims[0])


def _convolved(image: Sequence[int], weight: Sequence[int], result: Sequence[int] | None, texts: Texts) -> int:
    """2 x every position of the result (of the image, where transposed) x the weight's reach.

    ``texts``: stride, padding, dilation, transposed, output padding, groups.
    """
    stride, padding, dilation = (ast.literal_eval(text) for text in texts[:3])
    if texts[3] == "True":
        return 2 * image[0] * prod(image[2:]) * prod(weight)
    sides: Sequence[int] = (
        result[2:]
        if result is not None
        else [
            (side + 2 * p - d * (k - 1) - 1) // s + 1
            for side, k, s, p, d in zip(image[2:], weight[2:], stride, padding, dilation, strict=True)
        ]
    )
    return 2 * image[0] * prod(sides) * prod(weight)


def _convolution(dims: Shapes, texts: Texts) -> int:
    return _convolved(dims[0], dims[1], None, texts[3:])


def _convolution_backward(dims: Shapes, texts: Texts) -> int:
    """Gradients of data and weight cost one forward pass each, where they are asked for (the mask)."""
    mask = ast.literal_eval(texts[10])
    return (bool(mask[0]) + bool(mask[1])) * _convolved(dims[1], dims[2], dims[0], texts[4:])


def _attention(first: int, products: int) -> Callable[[Shapes, Texts], int]:
    """Query, key and value ``[B, H, S, D]`` from argument ``first``: ``products`` of Sq x Sk x D."""

    def flops(dims: Shapes, _: Texts) -> int:
        query, key = dims[first], dims[first + 1]
        return 2 * products * prod(query) * int(key[-2])

    return flops


def _cells(passes: int, *, flat: bool) -> Callable[[Shapes, Texts], int]:
    """Recurrent layers over ``[T, B, I]``: every matrix once for each of T x B steps.

    Matrices are arguments 1 and 2, or the list at argument 1 (``flat``).
    """

    def flops(dims: Shapes, _: Texts) -> int:
        matrices = [shape for shape in (dims[1] if flat else dims[1:3]) if len(shape) == 2]
        steps: int = prod(dims[0][:2])
        weights: int = sum(prod(shape) for shape in matrices)
        return 2 * passes * steps * weights

    return flops


CONTRACTIONS: Mapping[str, Callable[[Shapes, Texts], int]] = MappingProxyType(
    {
        "aten::mm": _product(0),
        "aten::bmm": _product(0),
        "aten::addmm": _product(1),
        "aten::addmm_": _product(1),
        "aten::_addmm_activation": _product(1),
        "aten::baddbmm": _product(1),
        "aten::baddbmm_": _product(1),
        "aten::addbmm": _product(1),
        "aten::_scaled_mm": _product(0),
        "aten::_int_mm": _product(0),
        "aten::mv": _vector,
        "aten::dot": _vector,
        "aten::convolution": _convolution,
        "aten::convolution_overrideable": _convolution,
        "aten::convolution_backward": _convolution_backward,
        **{
            f"aten::{name}": _attention(0, 2)
            for name in (
                "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
                "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
            )
        },
        **{
            f"aten::{name}_backward": _attention(1, 5)
            for name in (
                "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
                "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
            )
        },
        "aten::mkldnn_rnn_layer": _cells(1, flat=False),
        "aten::mkldnn_rnn_layer_backward": _cells(2, flat=False),
        "aten::_cudnn_rnn": _cells(1, flat=True),
        "aten::_cudnn_rnn_backward": _cells(2, flat=True),
    }
)  # fmt: skip
"""Operator -> FLOPs from (shapes, concrete arguments). Fused attention takes five products backward: scores anew,
then one for each of four gradients."""
