"""What a user may fix of a model: sizes, shapes, values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ASSUMED_BATCH = 32
"""Samples per GPU where neither the file nor the user says (CLI contract)."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Bindings of open sizes. Sizes are elements; ``input_values`` steer control flow.

    ``signature`` chooses among those of a SavedModel.
    """

    batch: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    input_values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    signature: str | None = None
