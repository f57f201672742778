"""One update of the policy and its value baseline (Peng et al., DL2, section 4.3).

loss = -mean(weight * A * log pi(a|s)) - entropy_weight * mean entropy. ``slot`` credit, as published: R, the slot's
reward, is the same for all of its actions, and A = R - V(s). ``step`` credit, not in DL2's paper, whose single reward
for the hundreds of actions of a slot tells little of each: every action is rewarded with what it adds to its job's
progress (r, from ``progress``), R is the sum of the slot's rewards from there on, and A = r + V(s') - V(s), with
V = 0 once the slot has ended. Advantages are divided by their root mean square in the batch, so that the weight of
the entropy means the same whatever the rewards are. ``pace`` credit is another update: see ``all_actions``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphcost.errors import UnknownNameError
from graphcost.registry import did_you_mean
from graphcost.sched.dl2.network import Network, log_probabilities, torch_module
from graphcost.sched.dl2.replay import Samples

if TYPE_CHECKING:
    import torch

CREDITS = ("step", "pace", "slot")
LARGEST_GRADIENT = 1.0
"""assumed: the norm to which a gradient is cut."""

UNLIKELY = 0.01
"""assumed: an action less probable than this is pushed down in proportion only. A replayed or forced one that the
policy has long given up would drive its logit without end, since nothing corrects for who chose it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Of one update: the policy's, the value's (squared error), the entropy in nats."""

    policy: float
    value: float
    entropy: float


@dataclass(frozen=True, slots=True)
class ActorCritic:
    """Networks, their optimisers, and how an action is credited. ``critic`` off: A = R, no baseline."""

    policy: Network
    value: Network
    policy_optimizer: torch.optim.Optimizer
    value_optimizer: torch.optim.Optimizer
    entropy_weight: float = 0.1
    credit: str = "step"
    critic: bool = True

    def __post_init__(self) -> None:
        if self.credit not in CREDITS:
            raise UnknownNameError(
                f"no credit named {self.credit!r}{did_you_mean(self.credit, CREDITS)} ({', '.join(CREDITS)})"
            )

    def value_of(self, state: NDArray[np.float32]) -> float:
        """What the critic expects from one state on."""
        torch = torch_module()
        with torch.inference_mode():
            return float(self.value(torch.from_numpy(state[None]))[0])

    def update(
        self, samples: Samples, rewards: NDArray[np.float32], weights: NDArray[np.float32], *, actor: bool = True
    ) -> tuple[Loss, np.ndarray]:
        """One step of both networks, of the value alone without ``actor``; the loss and the advantages before it.

        ``rewards``: of single actions, for ``step`` credit.
        """
        torch = torch_module()
        states, returns, importance = (torch.from_numpy(part) for part in (samples.states, samples.returns, weights))
        values = self.value(states)
        advantages = self._advantages(samples, torch.from_numpy(rewards), values.detach())
        value_loss = (importance * (values - returns) ** 2).mean()
        if self.critic:
            step(self.value, self.value_optimizer, value_loss)
        policy_loss = entropy = torch.zeros(())
        if actor:
            odds = log_probabilities(self.policy(states), torch.from_numpy(samples.masks))
            chosen = odds.gather(1, torch.from_numpy(samples.actions)[:, None]).squeeze(1)
            entropy = -(odds.exp() * odds).sum(1).mean()
            scaled = advantages / (advantages.square().mean().sqrt() + 1e-8)
            gone = (chosen.detach().exp() / UNLIKELY).clamp(max=1.0)
            policy_loss = -(importance * torch.where(scaled < 0, gone * scaled, scaled) * chosen).mean()
            step(self.policy, self.policy_optimizer, policy_loss - self.entropy_weight * entropy)
        loss = Loss(float(policy_loss.detach()), float(value_loss.detach()), float(entropy.detach()))
        return loss, advantages.numpy()

    def _advantages(self, samples: Samples, rewards: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        torch = torch_module()
        returns = torch.from_numpy(samples.returns)
        if not self.critic:
            return returns
        if self.credit == "slot":
            return returns - values
        with torch.no_grad():
            after = self.value(torch.from_numpy(samples.nexts))
        return rewards + after.masked_fill(torch.from_numpy(samples.ends), 0.0) - values


def step(network: Network, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """One, its gradient cut to ``LARGEST_GRADIENT``."""
    torch = torch_module()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
    optimizer.step()
