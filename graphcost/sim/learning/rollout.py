"""A trace run by the policy being trained: a slot at a time, every decision kept as a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.dl2.encoding import SlotEncoder, State
from graphcost.sched.dl2.exploration import Exploration
from graphcost.sched.dl2.network import Network, probabilities
from graphcost.sched.dl2.replay import Samples
from graphcost.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class FilledSlot:
    """``samples`` without returns (zero); every job's row as the slot ran, and the share of its epochs done.

    ``paces``: epochs a second while it ran, 0 for a job that stood. ``reward``: DL2's, the sum of true shares.
    ``next_state``: the next slot's first, None after the last.
    """

    samples: Samples
    rows: NDArray[np.float32]
    shares: NDArray[np.float32]
    paces: NDArray[np.float32]
    reward: float
    next_state: State | None


def slots_of(
    run: Simulation, policy: Network, exploration: Exploration, taken: np.ndarray, draw: np.random.Generator
) -> Iterator[FilledSlot]:
    """Each slot until the trace is over. ``taken``: kinds of actions so far, counted on.

    The void that ends a slot is a sample even where nothing else was possible: the critic learns from it.
    """
    slot = SlotEncoder(run.view(), policy.spec)
    while True:
        samples = _filled(slot, policy, exploration, taken, draw)
        jobs = slot.allocation.view.jobs
        rows = np.stack([slot.row_of(job) for job in jobs])
        outcome = run.run_slot(slot.decision().grants)
        shares = np.array([outcome.epochs.get(job.job_id, 0.0) / job.epochs for job in jobs], np.float32)
        ran = [(outcome.epochs.get(job.job_id, 0.0), outcome.ran_s.get(job.job_id, 1.0)) for job in jobs]
        paces = np.array([epochs / ran_s for epochs, ran_s in ran], np.float32)
        if not run.done:
            slot = SlotEncoder(run.view(), policy.spec)
        yield FilledSlot(samples, rows, shares, paces, outcome.reward, None if run.done else slot.state)
        if run.done:
            return


def _filled(
    slot: SlotEncoder, policy: Network, exploration: Exploration, taken: np.ndarray, draw: np.random.Generator
) -> Samples:
    """Fill a slot by drawn actions."""
    states, masks, actions, afters = [], [], [], []
    void = np.zeros(policy.spec.columns, np.float32)
    going = True
    while going:
        action = exploration.override(slot, taken, draw)
        if action is None:
            odds = probabilities(policy, slot.state, slot.mask)
            action = int(draw.choice(len(odds), p=odds))
        states.append(slot.state.copy())
        masks.append(slot.mask.copy())
        actions.append(action)
        job = None if action == policy.spec.void else slot.window[action // 3]
        going = slot.take(action)
        afters.append(void if job is None else slot.row_of(job))
        if job is not None:
            taken[action % 3] += 1
    count, held = len(actions), np.stack(states)
    return Samples(
        states=held,
        masks=np.stack(masks),
        actions=np.array(actions),
        returns=np.zeros(count, np.float32),
        ends=np.arange(count) == count - 1,
        afters=np.stack(afters),
        nexts=np.concatenate((held[1:], held[-1:])),
    )
