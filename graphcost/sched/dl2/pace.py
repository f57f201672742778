"""How fast a job runs on its tasks, learned from what slots brought; and what every possible action would add to it.

The logarithm of epochs a second, by model, workers and servers alone. A slot at pace v in place of u shortens a job's
time by log(v / u) slots, to first order, so that the sum over slots is completion time saved. DL2's own reward, shares
of all epochs, makes the tasks of a job of twenty slots worth a twentieth of those of a job of one: less than the error
of what is learned. Not in DL2's paper; nothing but progress reports is used, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.dl2.encoding import PolicySpec, State
from graphcost.sched.dl2.progress import ProgressModel
from graphcost.sched.features import ACTIONS, NUMBERS
from graphcost.sched.view import NOTHING, Resources

STANDING = 3.0
"""assumed: a job without a worker, or without the server that it needs, counts as running at exp(-3), a twentieth,
of the pace of one of each; log of nothing is no number."""


class Tasked(Protocol):
    """A model as trained: what one worker takes, and one parameter server (None: it trains by AllReduce)."""

    @property
    def worker(self) -> Resources: ...

    @property
    def ps(self) -> Resources | None: ...


class PaceModel(ProgressModel):
    """As ``ProgressModel``, of paces. ``tasks``: what a worker and a server take, by model of the spec."""

    def __init__(
        self, spec: PolicySpec, learning_rate: float, seed: int, tasks: Sequence[Tasked], capacity: Resources
    ) -> None:
        super().__init__(spec, learning_rate, seed)
        self._models = len(spec.models)
        self._served = np.array([model.ps is not None for model in tasks], np.float32)
        shares = np.array([[_share(model, *added, capacity) for added in ACTIONS] for model in tasks], np.float32)
        self._costs = shares / shares.mean()

    def add(self, rows: State, paces: NDArray[np.float32]) -> None:
        """A slot's jobs and their epochs a second; one that stood tells nothing."""
        ran = paces > 0
        super().add(self._told(rows[ran]), np.log(paces[ran]))

    def __call__(self, rows: State) -> NDArray[np.float32]:
        """Expected log of epochs a second, ``[n, columns]`` to ``[n]``."""
        least = np.stack((np.ones(len(rows), np.float32), rows[:, : self._models] @ self._served), axis=1)
        lacking = (rows[:, -2:] < least).any(1)
        running = self._told(rows)
        running[:, -2:] = np.maximum(rows[:, -2:], least)
        found: NDArray[np.float32] = super().__call__(running) - np.float32(STANDING) * lacking
        return found

    def advantages(self, states: State) -> NDArray[np.float32]:
        """What each action would add to its job's pace over the share that it takes: ``[n, window, columns]`` to
        ``[n, 3 window + 1]``; 0 for void and empty positions. Optimus's order of tasks, of a learned pace.
        """
        count, window = states.shape[:2]
        there = (states[..., : self._models + 2] != 0).any(-1)
        rows = states[there]
        before, cost = self(rows), rows[:, : self._models] @ self._costs
        gains = np.zeros((count, window, len(ACTIONS)), np.float32)
        for kind, (workers, ps) in enumerate(ACTIONS):
            after = rows.copy()
            after[:, -2:] += (workers, ps)
            gains[there, kind] = (self(after) - before) / np.where(cost[:, kind] > 0, cost[:, kind], 1.0)
        return np.concatenate((gains.reshape(count, -1), np.zeros((count, 1), np.float32)), axis=1)

    def _told(self, rows: State) -> State:
        """A pace depends on model and tasks alone; their logarithms and ratio stand in place of the other columns."""
        told = rows.copy()
        workers, ps = told[:, -2], told[:, -1]
        logs = np.log2(np.maximum(workers, 1)), np.log2(np.maximum(ps, 1)), np.log2(np.maximum(workers / np.maximum(ps, 1), 1))
        told[:, self._models : -2] = np.stack(logs, axis=1) / self._scale.numpy()[self._models : -2]
        return told


def _share(model: Tasked, workers: int, ps: int, capacity: Resources) -> float:
    return (model.worker * workers + (model.ps or NOTHING) * ps).dominant_share(capacity)
