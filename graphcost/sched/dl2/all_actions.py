"""A policy's update by the worth of all actions of a state, in place of the one that was taken.

Of all policies softmax(A / weight of the entropy) has the largest sum_a pi(a|s) A(s, a) + weight * entropy (Haarnoja
et al., Soft Actor-Critic, ICML'18); the policy is drawn to it by cross-entropy, which also moves one that is sure of
something else, where the policy gradient is pi(a|s) times smaller. What an override or an older policy chose does not
matter to it, so replayed samples need no correction for who chose, and an action is judged before anybody has tried
it. A(s, a) comes from ``pace``. Not in DL2's paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphcost.sched.dl2.actor_critic import Loss, step
from graphcost.sched.dl2.network import Network, log_probabilities, torch_module
from graphcost.sched.dl2.replay import Samples

if TYPE_CHECKING:
    import torch

SMALLEST = 0.01
"""assumed: gains in log pace below this are within the error of what is learned, and are not blown up."""

SHARPEST = 1e-3
"""Smallest weight of the entropy; 0 would be the best action alone."""


def all_actions_step(
    policy: Network, optimizer: torch.optim.Optimizer, samples: Samples, worth: NDArray[np.float32], entropy: float
) -> tuple[Loss, NDArray[np.float32]]:
    """One update; the loss before it (how far the policy is off, nats), and of each sample, for replay's priorities.

    ``worth``: ``[n, actions]``; divided by each state's root mean square, so that the last tasks of a slot, which add
    little, are learned as well as the first.
    """
    torch = torch_module()
    masks, worths = torch.from_numpy(samples.masks), torch.from_numpy(worth)
    worths = worths.masked_fill(~masks, 0.0)
    spread = (worths.square().sum(1) / masks.sum(1)).sqrt().clamp(min=SMALLEST)[:, None]
    wanted = log_probabilities(worths / spread / max(entropy, SHARPEST), masks)
    odds = log_probabilities(policy(torch.from_numpy(samples.states)), masks)
    off = (wanted.exp() * (wanted - odds)).sum(1)
    loss = off.mean()
    step(policy, optimizer, loss)
    return Loss(float(loss.detach()), 0.0, float(-(odds.exp() * odds).sum(1).mean().detach())), off.detach().numpy()
