"""Supervised warm-up: labels from another scheduler's increments, and the cross-entropy that learns them.

A sample is taken before each increment of the teacher; its first bundles, which the policy hands out by itself
(``PolicySpec.starting_bundle``), are none. Void is labelled where the teacher stops of its own will, unlike in
DL2's code, which never learns to stop from its teacher.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.dl2.encoding import Mask, PolicySpec, SlotEncoder, State
from graphcost.sched.dl2.network import Network, log_probabilities, torch_module
from graphcost.sched.view import Decision, SlotView

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Labels:
    """What a teacher did: states, the actions possible there, the one it took."""

    states: NDArray[np.float32]
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.actions)


def labels_of(view: SlotView, decision: Decision, spec: PolicySpec) -> Iterator[tuple[State, Mask, int]]:
    """The samples of one slot. An increment that is none of the policy's actions is followed without a label."""
    slot = SlotEncoder(view, spec)
    jobs = {job.job_id: job for job in view.jobs}
    bundled = {grant.job_id for grant in slot.allocation.decision().grants}
    for step in decision.increments:
        job = jobs[step.job_id]
        if step.job_id in bundled and (step.workers, step.ps) == (1, job.bundle_ps):
            bundled.discard(step.job_id)
            continue
        action = slot.action_of(step.job_id, step.workers, step.ps)
        if action is None:
            slot.give(job, step.workers, step.ps)
        elif slot.mask[action]:
            yield slot.state.copy(), slot.mask.copy(), action
            slot.take(action)
    if slot.mask[:-1].any():
        yield slot.state.copy(), slot.mask.copy(), spec.void


def cross_entropy_step(
    network: Network, optimizer: torch.optim.Optimizer, labels: Labels, picked: np.ndarray
) -> float:
    """One update on the samples ``picked``; the loss before it, nats a sample."""
    torch = torch_module()
    states, masks, actions = (
        torch.from_numpy(part[picked]) for part in (labels.states, labels.masks, labels.actions)
    )
    chosen = log_probabilities(network(states), masks).gather(1, actions[:, None]).squeeze(1)
    loss = -chosen.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def shuffled(labels: Labels, picked: np.ndarray, draw: np.random.Generator) -> Labels:
    """The samples ``picked`` with the jobs' positions permuted, each its own way: a dense network learns all of them.

    As DL2's code does in supervised learning alone.
    """
    states, masks, actions = labels.states[picked], labels.masks[picked], labels.actions[picked].copy()
    count, window = states.shape[:2]
    order = draw.permuted(np.tile(np.arange(window), (count, 1)), axis=1)
    states = np.take_along_axis(states, order[:, :, None], axis=1)
    by_job = np.take_along_axis(masks[:, :-1].reshape(count, window, 3), order[:, :, None], axis=1)
    masks = np.concatenate((by_job.reshape(count, -1), masks[:, -1:]), axis=1)
    where = np.argsort(order, axis=1)
    real = actions < 3 * window
    actions[real] = 3 * where[real, actions[real] // 3] + actions[real] % 3
    return Labels(states, masks, actions)
