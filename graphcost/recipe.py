"""How a model is trained, apart from the model: numeric precision and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Precision(StrEnum):
    """Numeric recipe of a step (torch's names)."""

    FP32 = "fp32"
    TF32 = "tf32"
    AMP_FP16 = "amp-fp16"
    AMP_BF16 = "amp-bf16"
    BF16 = "bf16"

    @property
    def weight_bytes(self) -> int:
        """Bytes of a stored weight and of its gradient on the wire: torch AMP keeps both in fp32."""
        return 2 if self is Precision.BF16 else 4

    @property
    def halves_activations(self) -> bool:
        """Whether activations are kept in two bytes."""
        return self in (Precision.AMP_FP16, Precision.AMP_BF16, Precision.BF16)

    @property
    def is_amp(self) -> bool:
        """Whether contractions run in a half format over fp32 weights."""
        return self in (Precision.AMP_FP16, Precision.AMP_BF16)


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer's work per parameter: values moved, values kept, FLOPs."""

    name: str
    moved_values: int
    state_values: int
    flops: int


OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        # Fused kernels: read weight, gradient, state; write weight, state (COST_MODEL: 12, 20, 28 bytes in fp32).
        "none": Optimizer("none", 0, 0, 0),
        "sgd": Optimizer("sgd", 3, 0, 2),
        "momentum": Optimizer("momentum", 5, 1, 4),
        "adam": Optimizer("adam", 7, 2, 12),
        "adamw": Optimizer("adamw", 7, 2, 14),
    }
)
"""FLOPs: assumed, counted from the update equations (Kingma and Ba 2015; Loshchilov and Hutter 2019)."""
