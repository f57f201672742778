"""Job-aware exploration: in a bad state the policy's action is overridden now and then, in training alone.

Bad states of the paper: workers without a server, servers without a worker, a ratio of the two over ten. Its code
adds that a kind of action (worker, server, both) rarer than a share of all so far is forced; without it a policy
warmed up on bundles never tries anything else. Source: Peng et al., DL2 (arXiv 1909.06040), section 4.4; DL2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphcost.sched.dl2.encoding import SlotEncoder

RATIO = 10
"""A bad ratio of workers to servers, either way; the paper's."""

RARE = 0.1
"""assumed: the share of all actions under which a kind is rare. DL2's code has 0.001, which explores too little
where updates are few."""

WORKER, SERVER, BOTH = range(3)


@dataclass(frozen=True, slots=True)
class Exploration:
    """``chance``: how often a bad state is acted on (the paper's epsilon, 0.4); 0 explores by the policy alone."""

    chance: float = 0.4

    def override(self, slot: SlotEncoder, taken: np.ndarray, draw: np.random.Generator) -> int | None:
        """An action in place of the policy's, or None. ``taken``: how often each kind was taken so far."""
        if not self.chance or draw.random() >= self.chance:
            return None
        for row, job in enumerate(slot.window):
            if job.ps is None:
                continue
            workers, ps = slot.allocation.workers(job), slot.allocation.ps(job)
            kind = _remedy(workers, ps)
            if kind is not None and slot.mask[3 * row + kind]:
                return 3 * row + kind
        rarest = int(taken.argmin())
        if taken.sum() and taken[rarest] < RARE * taken.sum():
            possible = np.flatnonzero(slot.mask[:-1].reshape(-1, 3)[:, rarest])
            if possible.size:
                return 3 * int(draw.choice(possible)) + rarest
        return None


def _remedy(workers: int, ps: int) -> int | None:
    """The kind of task that a job lacks.

    >>> _remedy(2, 0), _remedy(0, 2), _remedy(11, 1), _remedy(1, 11), _remedy(10, 1), _remedy(0, 0)
    (1, 0, 1, 0, None, None)
    """
    if ps == 0 and workers == 0:
        return None
    if ps == 0 or workers > RATIO * ps:
        return SERVER
    if workers == 0 or ps > RATIO * workers:
        return WORKER
    return None
