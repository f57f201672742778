"""Elementwise FLOP conventions: every number below is ``assumed:``, and lives only here.

The counts of contractions follow from their definition; those of everything else are
a convention, since a library may evaluate ``exp`` in any number of instructions. They
never enter ``matmul_flops``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

POINTWISE = 1
"""assumed: a pointwise operator takes one FLOP per output element (sqrt and division too)."""

TRANSCENDENTAL = 4
"""assumed: exp, log, tanh, sigmoid, erf, pow, trigonometry and activations built from them."""

REDUCTION = 1
"""assumed: a reduction takes one FLOP per input element, whatever it reduces with."""

SOFTMAX = 5 + TRANSCENDENTAL
"""assumed: maximum, subtract, sum, divide and scale per element, and the exponential."""

SOFTMAX_BACKWARD = 4
"""assumed: product with the gradient, its row sum, subtraction, product with the output."""

NORM = 5
"""assumed: mean, centre, variance, scale and shift per element, for every normalisation."""

NORM_BACKWARD = 2 * NORM
"""assumed: two row sums and the combination, twice the forward pass."""

POOL = 1
"""assumed: one FLOP per element of each pooling window."""

ROTARY = 3
"""assumed: two products and a sum per rotated element (RoFormer, equation 34)."""

LOSS_BACKWARD = 2
"""assumed: softmax minus target, times the incoming gradient, per logit."""

TRANSCENDENTAL_OPS = frozenset(
    {
        "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Pow", "Softplus", "Elu", "Selu", "Celu", "Gelu", "Mish",
        "Swish", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
        "FastGelu", "QuickGelu", "QLinearSigmoid",
    }
)  # fmt: skip
"""Operators that take :data:`TRANSCENDENTAL` FLOPs per output element; all others one."""

COMPOSED_OPS: Mapping[str, int] = MappingProxyType(
    {
        "SwiGLU": TRANSCENDENTAL + 1,  # swish of the gate, times the value
        "BiasGelu": TRANSCENDENTAL + 1,  # bias, gelu
        "BiasSplitGelu": TRANSCENDENTAL + 3,  # bias on both halves, gelu of one, their product
        "BiasAdd": 2,  # bias and skip
        "Cast": 0,  # a conversion, not arithmetic
        "CastLike": 0,
    }
)
"""Operators made of several steps, FLOPs per output element."""


def pointwise_flops(op_type: str) -> int:
    """FLOPs per output element of a pointwise operator.

    >>> pointwise_flops("Relu"), pointwise_flops("Gelu")
    (1, 4)
    """
    if op_type in COMPOSED_OPS:
        return COMPOSED_OPS[op_type]
    return TRANSCENDENTAL if op_type in TRANSCENDENTAL_OPS else POINTWISE


ACTIVATIONS: Mapping[str, int] = MappingProxyType(
    {
        "": 0, "identity": 0, "none": 0, "relu": POINTWISE, "leakyrelu": POINTWISE, "clip": POINTWISE,
        "hardsigmoid": POINTWISE, "hardswish": POINTWISE, "affine": POINTWISE, "softsign": POINTWISE,
        "thresholdedrelu": POINTWISE, "swiglu": TRANSCENDENTAL + 1,
    }
)  # fmt: skip


def activation_flops(name: str) -> int:
    """FLOPs per element of a fused activation, by the name its attribute gives.

    >>> activation_flops("Relu"), activation_flops("silu"), activation_flops("")
    (1, 4, 0)
    """
    return ACTIVATIONS.get(name.lower(), TRANSCENDENTAL)
