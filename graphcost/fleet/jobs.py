"""Jobs as numpy columns: what the equations see of a table, one entry a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphcost.fleet.kinds import KINDS, JobKind

Column = NDArray[np.float64]
Rows = NDArray[np.intp] | slice

PIECE_ROWS = 1 << 15
"""Jobs evaluated at a time: a column of them is 256 kB, so that intermediate ones stay in the cache."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Features per step and cNode. ``weight_bytes``: S_w, dense and sparse together.

    ``dense_model_bytes`` and ``sparse_model_bytes``: what a replica holds on a device, and
    the tables that PEARL partitions; where the table does not say, a lower bound: what the
    step moves. ``is_stated``: where it does say. ``gpu_hours``: None without that column.
    """

    kind: NDArray[np.uint8]
    cnodes: Column
    batch: Column
    input_bytes: Column
    flops: Column
    mem_bytes: Column
    weight_bytes: Column
    dense_model_bytes: Column
    sparse_model_bytes: Column
    is_stated: NDArray[np.bool_]
    gpu_hours: Column | None = None

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Rows) -> Jobs:
        """Those jobs, in that order."""
        return Jobs(
            self.kind[rows], self.cnodes[rows], self.batch[rows], self.input_bytes[rows], self.flops[rows],
            self.mem_bytes[rows], self.weight_bytes[rows], self.dense_model_bytes[rows],
            self.sparse_model_bytes[rows], self.is_stated[rows],
            None if self.gpu_hours is None else self.gpu_hours[rows],
        )  # fmt: skip

    def by_kind(self) -> Iterator[tuple[JobKind, NDArray[np.intp], Jobs]]:
        """Kinds that occur, with their row numbers and their jobs, in pieces that stay in a core's cache."""
        for kind in KINDS:
            rows = np.flatnonzero(self.kind == kind.code)
            for first in range(0, len(rows), PIECE_ROWS):
                piece = rows[first : first + PIECE_ROWS]
                yield kind, piece, self.take(piece)


def ratio(above: Column, below: Column, *, empty: float) -> Column:
    """``above / below``, and ``empty`` where ``below`` is 0: a job that takes no time."""
    if len(below) and below.min() > 0:
        whole: Column = above / below
        return whole
    found = np.full(len(below), empty)
    np.divide(above, below, out=found, where=below > 0)
    return found
