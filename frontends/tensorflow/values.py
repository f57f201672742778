"""What is known of a value while a TensorFlow graph is walked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcost.frontends.onnx.values import SMALL_NUMEL, Leaf
from graphcost.ir import TensorSpec

__all__ = ["SMALL_NUMEL", "Leaf", "ListState", "Value", "Variable"]

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Variable:
    """A stored variable: its name, shape, whether training changes it, and by rows. Its content is never read."""

    name: str
    spec: TensorSpec | None
    dtype: int
    trainable: bool = True
    sparse: bool = False


@dataclass(slots=True)
class ListState:
    """A TensorList or TensorArray: the shape of an element and how many there are (None: not known)."""

    element: TensorSpec | None
    count: int | None


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the graph being walked.

    ``tensor`` stands for it in the scratch graph that TensorFlow infers shapes in (None:
    not even a placeholder can stand for it). ``dtype`` is TensorFlow's number. ``data`` is
    its content where that is small and known. ``constant`` values are the same at every
    step; ``leaves`` are the stored tensors whose numbers they carry. ``variable`` is what
    a resource handle points to, ``items`` what a list holds.
    """

    name: str
    dtype: int = 0
    spec: TensorSpec | None = None
    tensor: Any = field(default=None, compare=False)
    data: Array | None = field(default=None, compare=False)
    constant: bool = False
    leaves: tuple[Leaf, ...] = ()
    variable: Variable | None = None
    items: ListState | None = field(default=None, compare=False)

    @property
    def ints(self) -> tuple[int, ...] | None:
        """Content as integers, flattened; None where it is not known."""
        return None if self.data is None else tuple(int(v) for v in self.data.reshape(-1))
