"""What is known of a value while a graph is walked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphcost.ir import TensorSpec

SMALL_NUMEL = 4096
"""Values up to this many elements are kept and computed with: shapes, axes, sizes."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A stored tensor: where a constant's numbers live in the file.

    ``numel`` and ``stored_bytes`` are those of the dense tensor and of what the file
    holds (they differ for sparse tensors). ``trained``: a program says that training
    changes it, so that even one element is a parameter and no constant factor.
    """

    name: str
    spec: TensorSpec
    numel: int
    stored_bytes: int
    trained: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the graph being walked.

    ``spec`` is None while its shape is not known (``dtype`` may still be). ``data`` is
    its content where that is small and known. ``constant`` values are the same at every
    step; ``stored`` ones depend on stored tensors alone, not even on the input sizes;
    ``leaves`` are the stored tensors that carry their numbers. ``items`` holds the
    elements of a sequence.
    """

    name: str
    spec: TensorSpec | None = None
    dtype: str | None = None
    data: npt.NDArray[np.generic] | None = None
    constant: bool = False
    stored: bool = False
    leaves: tuple[Leaf, ...] = ()
    items: tuple[Value, ...] | None = None

    @property
    def ints(self) -> tuple[int, ...] | None:
        """Content as integers, flattened; None where it is not known."""
        return None if self.data is None else tuple(int(v) for v in self.data.reshape(-1))


ABSENT = Value("")
"""What a function's formal input is where the call leaves it out."""
