"""A trained policy as a scheduler: repeated inference until void (Peng et al., DL2, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphcost.sched.dl2.encoding import PolicySpec, SlotEncoder
from graphcost.sched.dl2.network import Network, probabilities
from graphcost.sched.policy import Knowledge, Scheduler
from graphcost.sched.view import Decision, SlotView

SOURCE = "Peng et al., DL2 (arXiv 1909.06040)"


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy network and how it decides: the likeliest action, or (``sampled``) one drawn by its probability.

    DL2's code samples by default when it evaluates too.
    """

    network: Network
    sampled: bool = False

    @property
    def spec(self) -> PolicySpec:
        """Its shape."""
        return self.network.spec

    def decide(self, view: SlotView, seed: int) -> Decision:
        """As any scheduler; ``seed`` matters only where actions are drawn."""
        slot = SlotEncoder(view, self.spec)
        draw = np.random.default_rng((seed, view.slot))
        while slot.mask[:-1].any() and slot.take(self.choose(slot, draw)):
            pass
        return slot.decision()

    def choose(self, slot: SlotEncoder, draw: np.random.Generator) -> int:
        """The next action."""
        odds = probabilities(self.network, slot.state, slot.mask)
        return int(draw.choice(len(odds), p=odds)) if self.sampled else int(odds.argmax())

    def scheduler(self, name: str = "dl2") -> Scheduler:
        """As the simulator takes it."""
        return Scheduler(name, self.decide, Knowledge.NONE, "tasks one at a time by a learned policy", SOURCE)
