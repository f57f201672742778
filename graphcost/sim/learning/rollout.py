"""A trace run by the policy being trained: a slot at a time, every decision kept as a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from graphcost.sched.dl2.encoding import SlotEncoder
from graphcost.sched.dl2.exploration import Exploration
from graphcost.sched.dl2.network import Network, probabilities
from graphcost.sched.dl2.replay import Samples
from graphcost.sim.simulation import Simulation


def slots_of(
    run: Simulation,
    policy: Network,
    exploration: Exploration,
    taken: np.ndarray,
    draw: np.random.Generator,
    value_of: Callable[[np.ndarray], float],
    discount: float,
) -> Iterator[Samples]:
    """Samples of each slot, until the trace is over. ``taken``: kinds of actions so far, counted on.

    ``value_of``: the critic, asked for the next slot's first state where ``discount`` is over 0. The void that
    ends a slot is a sample even where nothing else was possible: the critic learns from it.
    """
    slot = SlotEncoder(run.view(), policy.spec)
    while True:
        states, masks, actions = _filled(slot, policy, exploration, taken, draw)
        outcome = run.run_slot(slot.allocation.decision().grants)
        after = 0.0
        if not run.done:
            slot = SlotEncoder(run.view(), policy.spec)
            after = discount * value_of(slot.state) if discount else 0.0
        yield _samples(states, masks, actions, outcome.reward + after)
        if run.done:
            return


def _filled(
    slot: SlotEncoder, policy: Network, exploration: Exploration, taken: np.ndarray, draw: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray], list[int]]:
    """Fill a slot by drawn actions."""
    states, masks, actions = [], [], []
    while True:
        action = exploration.override(slot, taken, draw)
        if action is None:
            odds = probabilities(policy, slot.state, slot.mask)
            action = int(draw.choice(len(odds), p=odds))
        states.append(slot.state.copy())
        masks.append(slot.mask.copy())
        actions.append(action)
        if not slot.take(action):
            return states, masks, actions
        taken[action % 3] += 1


def _samples(
    states: Sequence[np.ndarray], masks: Sequence[np.ndarray], actions: Sequence[int], slot_return: float
) -> Samples:
    count = len(actions)
    held = np.stack(states)
    return Samples(
        states=held,
        masks=np.stack(masks),
        actions=np.array(actions),
        returns=np.full(count, slot_return, np.float32),
        ends=np.arange(count) == count - 1,
        nexts=np.concatenate((held[1:], held[-1:])),
    )
