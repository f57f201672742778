"""Experience replay: a ring of the last samples, drawn evenly or by priority; numpy alone.

Priorities after Schaul et al. (ICLR'16) with the numbers of DL2's code: alpha 0.9, beta 0.1 rising by 1e-4 a draw, a
new sample max(1, r - mean r), later min(|advantage| + 0.01, 4)**alpha; stratified draws, the oldest are overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcost.errors import UnknownNameError
from graphcost.registry import did_you_mean
from graphcost.sched.dl2.encoding import PolicySpec

REPLAYS = ("prioritised", "plain", "none")
ALPHA, BETA, BETA_RISE, SMALLEST, LARGEST = 0.9, 0.1, 1e-4, 0.01, 4.0


@dataclass(frozen=True, slots=True)
class Samples:
    """One slot's samples in order, or any drawn ones. ``ends``: the last of its slot, always a void.

    ``returns``: what the value network is drawn to (see ``actor_critic``). ``afters``: the job's row after the
    action, zero for void. ``nexts``: the state after the action; of a slot's last it has no meaning.
    """

    states: NDArray[np.float32]
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    returns: NDArray[np.float32]
    ends: NDArray[np.bool_]
    afters: NDArray[np.float32]
    nexts: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.actions)


class Replay:
    """Holds up to ``capacity`` samples. ``kind`` none keeps one slot alone and draws all of it."""

    def __init__(self, kind: str, capacity: int, spec: PolicySpec) -> None:
        if kind not in REPLAYS:
            raise UnknownNameError(f"no replay named {kind!r}{did_you_mean(kind, REPLAYS)} ({', '.join(REPLAYS)})")
        self.kind, self.capacity = kind, capacity
        self._states = np.zeros((capacity, spec.window, spec.columns), np.float32)
        self._masks = np.zeros((capacity, spec.actions), bool)
        self._actions = np.zeros(capacity, np.int64)
        self._returns = np.zeros(capacity, np.float32)
        self._ends = np.zeros(capacity, bool)
        self._afters = np.zeros((capacity, spec.columns), np.float32)
        self._priorities = np.zeros(capacity)
        self.size = self._next = self.draws = 0

    @property
    def ready(self) -> bool:
        """DL2 learns once the buffer is full."""
        return self.size == self.capacity or (self.kind == "none" and self.size > 0)

    def add(self, slot: Samples) -> None:
        """A slot's samples; of one longer than the buffer its last ones."""
        if self.kind == "none":
            self.size = self._next = 0
        kept = slice(max(0, len(slot) - self.capacity), None)
        count = len(slot.actions[kept])
        at = (self._next + np.arange(count)) % self.capacity
        self._states[at], self._masks[at], self._actions[at] = slot.states[kept], slot.masks[kept], slot.actions[kept]
        self._returns[at], self._ends[at], self._afters[at] = slot.returns[kept], slot.ends[kept], slot.afters[kept]
        mean = float(self._returns[: self.size].mean()) if self.size else 0.0
        self._priorities[at] = np.maximum(1.0, slot.returns[kept] - mean)
        self.size = min(self.capacity, self.size + count)
        self._next = (self._next + count) % self.capacity

    def draw(self, count: int, random: np.random.Generator) -> tuple[NDArray[np.int64], Samples, NDArray[np.float32]]:
        """Positions, samples, and importance weights (largest 1)."""
        if self.kind == "none":
            picked = np.arange(self.size)
        elif self.kind == "plain":
            picked = random.integers(self.size, size=count)
        else:
            ends = np.cumsum(self._priorities[: self.size])
            strata = (np.arange(count) + random.random(count)) * ends[-1] / count
            picked = np.minimum(np.searchsorted(ends, strata, side="right"), self.size - 1)
        weights = np.ones(len(picked), np.float32)
        if self.kind == "prioritised":
            beta = min(1.0, BETA + BETA_RISE * self.draws)
            odds = self._priorities[picked] / self._priorities[: self.size].sum()
            weights = ((self.size * odds) ** -beta).astype(np.float32)
            weights /= weights.max()
        self.draws += 1
        return picked, self._at(picked), weights

    def renew(self, picked: NDArray[np.int64], advantages: NDArray[np.float32]) -> None:
        """Priorities after an update."""
        self._priorities[picked] = np.minimum(np.abs(advantages) + SMALLEST, LARGEST) ** ALPHA

    def _at(self, picked: NDArray[np.int64]) -> Samples:
        after = (picked + 1) % self.capacity  # samples lie in the order they were made
        return Samples(
            self._states[picked], self._masks[picked], self._actions[picked], self._returns[picked],
            self._ends[picked], self._afters[picked], self._states[after],
        )  # fmt: skip

    def contents(self) -> dict[str, Any]:
        """Arrays and counters, for a checkpoint."""
        arrays = {name: getattr(self, f"_{name}") for name in _ARRAYS}
        return {**arrays, "size": self.size, "next": self._next, "draws": self.draws}

    def restore(self, contents: Mapping[str, Any]) -> None:
        """What ``contents`` gave; raises ``ValueError`` for arrays of another shape."""
        for name in _ARRAYS:
            held, found = getattr(self, f"_{name}"), contents[name]
            if held.shape != found.shape:
                raise ValueError(f"a replay of {list(found.shape)} for one of {list(held.shape)} ({name})")
            held[...] = found
        self.size, self._next, self.draws = (int(contents[name]) for name in ("size", "next", "draws"))


_ARRAYS = (*tuple(one.name for one in fields(Samples) if one.name != "nexts"), "priorities")
