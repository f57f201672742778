"""What a learning scheduler sees and may do: DL2's state matrix and its 3J + 1 actions.

State, a row a job of the window, by arrival: one-hot model, slots waited, remaining epochs as a share of
the total, dominant share already given in this slot, workers, parameter servers. Actions: job i one more
worker (3i), one more server (3i + 1), one of both (3i + 2), or void (3J), which ends the slot.
Source: Peng et al., DL2 (arXiv 1909.06040), sections 4.1 and 4.2; free capacity is no input there either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.allocation import Allocation
from graphcost.sched.view import JobView, SlotView

ACTIONS = ((1, 0), (0, 1), (1, 1))
"""(workers, servers) that the three actions of a job add."""

NUMBERS = 5
"""Columns after the one-hot model."""


def window_of(view: SlotView, allocation: Allocation, size: int) -> tuple[JobView, ...]:
    """The first ``size`` jobs by arrival that may still get something."""
    open_jobs = (
        job
        for job in view.jobs
        if allocation.within_caps(job, 1, 0) or (job.ps is not None and allocation.within_caps(job, 0, 1))
    )
    return tuple(job for job, _ in zip(open_jobs, range(size), strict=False))


def state(window: Sequence[JobView], allocation: Allocation, models: Sequence[str], size: int) -> NDArray[np.float32]:
    """``size`` rows of ``len(models) + NUMBERS`` columns; empty positions are zero. An unknown model has no one."""
    matrix = np.zeros((size, len(models) + NUMBERS), np.float32)
    column = {name: index for index, name in enumerate(models)}
    for row, job in enumerate(window):
        if job.model in column:
            matrix[row, column[job.model]] = 1.0
        matrix[row, len(models) :] = (
            job.waited_slots,
            job.remaining_epochs / job.epochs,
            allocation.dominant_share(job),
            allocation.workers(job),
            allocation.ps(job),
        )
    return matrix


def action_mask(window: Sequence[JobView], allocation: Allocation, size: int) -> NDArray[np.int8]:
    """1 where an action is allowed by the job's caps; void always is. Whether it fits is found by trying."""
    mask = np.zeros(3 * size + 1, np.int8)
    mask[-1] = 1
    for row, job in enumerate(window):
        for kind, (workers, ps) in enumerate(ACTIONS):
            mask[3 * row + kind] = allocation.within_caps(job, workers, ps)
    return mask
