"""What a job gets out of its tasks, learned from what slots brought: the per-action reward of ``step`` credit.

A small network from a job's row of the state, with the tasks it ended the slot with, to the share of its epochs done
in the slot. DL2's reward is the sum of these shares over jobs, so the difference that one action makes to
its job's is the action's own part of it. Nothing but the simulator's (or a cluster's) progress reports is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.dl2.encoding import PolicySpec, State
from graphcost.sched.dl2.network import layers, scales, torch_module

KEPT = 32768
"""assumed: rows remembered, some hundred slots."""


class ProgressModel:
    """Learns from ``add``-ed rows; answers for any rows."""

    def __init__(self, spec: PolicySpec, learning_rate: float, seed: int) -> None:
        torch, self.spec = torch_module(), spec
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = layers(spec.columns, 64, 64, 1)
        self._scale = torch.tensor(scales(spec))
        self.optimizer = torch.optim.Adam(self.layers.parameters(), lr=learning_rate)
        self._rows = np.zeros((KEPT, spec.columns), np.float32)
        self._shares = np.zeros(KEPT, np.float32)
        self.size = self._next = 0

    def add(self, rows: State, shares: NDArray[np.float32]) -> None:
        """A slot's jobs: their rows when it began to run, the share of their epochs that it brought."""
        at = (self._next + np.arange(len(shares))) % KEPT
        self._rows[at], self._shares[at] = rows, shares
        self.size = min(KEPT, self.size + len(shares))
        self._next = (self._next + len(shares)) % KEPT

    def learn(self, batch: int, random: np.random.Generator) -> float:
        """One update on drawn rows; the mean squared error before it."""
        torch = torch_module()
        picked = random.integers(self.size, size=batch)
        found = self._of(torch.from_numpy(self._rows[picked]))
        loss = ((found - torch.from_numpy(self._shares[picked])) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def __call__(self, rows: State) -> NDArray[np.float32]:
        """Expected share of each row, ``[n, columns]`` to ``[n]``."""
        torch = torch_module()
        with torch.inference_mode():
            found: NDArray[np.float32] = self._of(torch.from_numpy(rows)).numpy()
        return found

    def gains(self, states: State, actions: NDArray[np.int64], afters: State) -> NDArray[np.float32]:
        """What each action adds to its job's share; 0 for void. ``afters``: the job's row after the action."""
        void = 3 * states.shape[1]
        real = actions < void
        before = states[np.arange(len(actions)), np.where(real, actions // 3, 0)]
        return np.where(real, self(afters) - self(before), np.float32(0.0))

    def contents(self) -> dict[str, Any]:
        """For a checkpoint."""
        torch = torch_module()
        return {
            "weights": self.layers.state_dict(), "optimizer": self.optimizer.state_dict(),
            "rows": torch.from_numpy(self._rows), "shares": torch.from_numpy(self._shares),
            "size": self.size, "next": self._next,
        }  # fmt: skip

    def restore(self, contents: Mapping[str, Any]) -> None:
        """What ``contents`` gave."""
        self.layers.load_state_dict(contents["weights"])
        self.optimizer.load_state_dict(contents["optimizer"])
        self._rows[...], self._shares[...] = contents["rows"].numpy(), contents["shares"].numpy()
        self.size, self._next = int(contents["size"]), int(contents["next"])

    def _of(self, rows: Any) -> Any:
        return self.layers(rows * self._scale).squeeze(1)
