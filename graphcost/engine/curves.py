"""Operator times from curves measured on a machine: seconds over work, by class and phase.

A curve's work is FLOPs where an operator class computes and bytes where it moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from graphcost.curves import RateCurve
from graphcost.ir import OpCost, Phase
from graphcost.ops import OpClass

COMPUTES = frozenset({OpClass.MATMUL, OpClass.CONV, OpClass.DEPTHWISE, OpClass.ATTENTION, OpClass.RECURRENT})
"""Classes whose time follows FLOPs."""

STANDS_FOR: Mapping[str, str] = MappingProxyType(
    {
        "attention": "matmul", "recurrent": "matmul", "depthwise": "conv", "conv": "matmul", "norm": "softmax",
        "softmax": "norm", "reduce": "pointwise", "pool": "reduce", "gather": "copy", "copy": "pointwise",
        "update": "pointwise",
    }
)  # fmt: skip
"""Where a class was not measured: the one that takes its place (assumed, nearest in kind)."""


def curve_for(
    curves: Mapping[str, RateCurve], op_class: str, phase: Phase, dtype: str = "float32"
) -> RateCurve | None:
    """The curve of a class in a phase and dtype.

    Where it was not measured: float32's, the other phase's, then those of a related class.
    """
    seen: set[str] = set()
    name = op_class
    while name and name not in seen:
        for one in (phase, Phase.FORWARD, Phase.UPDATE):
            found = curves.get(f"{name}.{one}.{dtype}") or curves.get(f"{name}.{one}")
            if found is not None:
                return found
        seen.add(name)
        name = STANDS_FOR.get(name, "")
    return None


def curve_work(op_class: str, cost: OpCost) -> float:
    """What a class's curve runs over."""
    return float(cost.flops if op_class in COMPUTES else cost.bytes)
