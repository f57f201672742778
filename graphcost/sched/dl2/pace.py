"""How fast a job runs on its tasks, learned from what slots brought; and what every possible action is worth by that.

The logarithm of epochs a second, by model, workers and servers alone. A slot at pace v in place of u shortens a
job's time by log(v / u) slots, to first order, so that the sum over slots is completion time saved. DL2's own reward,
shares of all epochs, makes the tasks of a job of twenty slots worth a twentieth of those of a job of one: less than
the error of what is learned. Not in DL2's paper; nothing but progress reports is used, as there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.dl2.encoding import PolicySpec, State
from graphcost.sched.dl2.network import torch_module
from graphcost.sched.dl2.progress import ProgressModel
from graphcost.sched.view import NOTHING, Resources, Tasked

STANDING = 3.0
"""assumed: a job without a worker, or without the server that it needs, counts as running at exp(-3), a twentieth,
of the pace of one of each; log of nothing is no number."""


class PaceModel(ProgressModel):
    """A network for tasks that nobody tried, the mean of what was seen for those that somebody did.

    ``tasks``: by model of the spec; ``caps``: the most workers and servers of a job; ``capacity``: of the cluster.
    """

    def __init__(
        self, spec: PolicySpec, learning_rate: float, seed: int, tasks: Sequence[Tasked],
        caps: tuple[int, int], capacity: Resources,
    ) -> None:  # fmt: skip
        super().__init__(spec, learning_rate, seed)
        self._models, self._caps = len(spec.models), caps
        self._served = np.array([model.ps is not None for model in tasks])
        self._costs = _shares(tasks, caps, capacity)
        self._sums, self._counts = np.zeros((2, self._models, caps[0] + 1, caps[1] + 1))

    def add(self, rows: State, paces: NDArray[np.float32]) -> None:
        """A slot's jobs and their epochs a second; one that stood tells nothing."""
        ran = paces > 0
        logs, at = np.log(paces[ran]), self._at(rows[ran])
        super().add(self._told(rows[ran]), logs)
        np.add.at(self._sums, at, logs)
        np.add.at(self._counts, at, 1)

    def table(self) -> NDArray[np.float64]:
        """Log of epochs a second, ``[models, workers, servers]``, from none of each to the caps."""
        shape = self._sums.shape
        rows = np.zeros((self._sums.size, self.spec.columns), np.float32)
        models, workers, ps = (axis.ravel() for axis in np.indices(shape))
        rows[np.arange(len(rows)), models] = 1
        rows[:, -2], rows[:, -1] = workers, ps
        guessed = self(self._told(rows)).reshape(shape).astype(np.float64)
        found: NDArray[np.float64] = (guessed + self._sums) / (1 + self._counts)  # a guess counts as one seen slot
        found[self._served, :, 0] = found[self._served, :, min(1, self._caps[1])] - STANDING
        found[~self._served] = found[~self._served, :, :1]  # no server was ever seen there: guesses only
        found[:, 0] = found[:, 1] - np.where(np.arange(shape[2]) > 0, STANDING, STANDING * ~self._served[:, None])
        return found

    def worths(self) -> NDArray[np.float32]:
        """What a worker, a server or both are worth, ``[models, workers, servers, 3]`` by the tasks held.

        The most that they and any further tasks would add to the log of the pace for each share of the cluster that
        all of these take (shares in units of a usual task's): tasks that pay only together are not passed over, as
        Optimus's one step ahead does. Zero where the caps leave nothing.
        """
        table = self.table()
        worth = np.zeros((*table.shape, 3), np.float32)
        for workers, ps in np.ndindex(table.shape[1:]):
            gains = table[:, workers:, ps:] - table[:, workers, ps][:, None, None]
            rates = gains / self._costs[:, : gains.shape[1], : gains.shape[2]]
            for kind, further in enumerate((rates[:, 1:], rates[:, :, 1:], rates[:, 1:, 1:])):
                if further.size:
                    worth[:, workers, ps, kind] = further.max((1, 2))
        return worth

    def advantages(self, states: State, worths: NDArray[np.float32]) -> NDArray[np.float32]:
        """``worths`` by action: ``[n, window, columns]`` to ``[n, 3 window + 1]``; 0 for void and empty positions."""
        count = len(states)
        there = states[..., : self._models].any(-1)
        found = np.zeros((*there.shape, 3), np.float32)
        found[there] = worths[self._at(states[there])]
        return np.concatenate((found.reshape(count, -1), np.zeros((count, 1), np.float32)), axis=1)

    def contents(self) -> dict[str, Any]:
        """For a checkpoint."""
        torch = torch_module()
        return {
            **super().contents(),
            "sums": torch.from_numpy(self._sums), "counts": torch.from_numpy(self._counts),
        }  # fmt: skip

    def restore(self, contents: Mapping[str, Any]) -> None:
        """What ``contents`` gave."""
        super().restore(contents)
        self._sums[...], self._counts[...] = contents["sums"].numpy(), contents["counts"].numpy()

    def _at(self, rows: State) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        workers = np.minimum(rows[:, -2].astype(np.intp), self._caps[0])
        ps = np.minimum(rows[:, -1].astype(np.intp), self._caps[1])
        return rows[:, : self._models].argmax(1), workers, ps

    def _told(self, rows: State) -> State:
        """A pace depends on model and tasks alone; their logarithms and ratio stand in place of the other columns."""
        told = rows.copy()
        workers, ps = np.maximum(told[:, -2], 1), np.maximum(told[:, -1], 1)
        logs = np.stack((np.log2(workers), np.log2(ps), np.log2(np.maximum(workers / ps, 1))), axis=1)
        told[:, self._models : -2] = logs / self._scale.numpy()[self._models : -2]
        return told


def _shares(tasks: Sequence[Tasked], caps: tuple[int, int], capacity: Resources) -> NDArray[np.float64]:
    """Dominant shares, ``[models, workers, servers]``, in units of the mean of one worker; of nothing infinite."""
    found = np.array(
        [
            [
                [(model.worker * w + (model.ps or NOTHING) * p).dominant_share(capacity) for p in range(caps[1] + 1)]
                for w in range(caps[0] + 1)
            ]
            for model in tasks
        ]
    )
    found /= found[:, 1, 0].mean()
    return np.where(found > 0, found, np.inf)
