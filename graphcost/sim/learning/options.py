"""What a training run is told, and what it reports; names and defaults are the command line's."""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.errors import UsageError


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Batch, buffer and ``warm_up_learning_rate`` are those of DL2's paper (arXiv 1909.06040).

    Ours: fewer updates, several a slot, since simulated slots cost more than updates do. The paper has 6000
    updates, one a slot, learning rate 1e-4, entropy 0.1, exploration 0.4, a dense network of 2 x 256, discount 0.9
    (its code none: it learns from the slot's reward alone), ``credit`` slot. ``credit`` pace goes further from it
    (see ``graphcost.sched.dl2.pace``) and is best where speeds do not depend on the place; the critic and discount
    then have no part, and ``critic_updates`` teach the paces alone. ``validate_every`` counts updates.
    ``clusters``: share the batch, the buffer and the traces (see ``federated``).
    """

    seed: int = 0
    teacher: str = "drf"
    network: str = "shared"
    hidden: int = 64
    window: int = 20
    starting_bundle: bool = True
    placement: str = "spread"
    warm_up_traces: int = 10
    warm_up_updates: int = 1000
    warm_up_learning_rate: float = 0.005
    updates: int = 4000
    updates_per_slot: int = 4
    critic_updates: int = 400
    learning_rate: float = 3e-4
    value_learning_rate: float = 1e-3
    batch: int = 256
    buffer: int = 8192
    replay: str = "prioritised"
    discount: float = 0.0
    entropy: float = 0.05
    explore: float = 0.2
    critic: bool = True
    credit: str = "step"
    train_traces: int = 100
    validation_traces: int = 10
    validate_every: int = 500
    clusters: int = 1

    def __post_init__(self) -> None:
        for name in ("hidden", "window", "warm_up_traces", "updates_per_slot", "batch", "buffer", "train_traces",
                     "validation_traces", "validate_every", "clusters"):  # fmt: skip
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")
        for name in ("seed", "updates", "warm_up_updates", "critic_updates"):
            if getattr(self, name) < 0:
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)}: 0 or more")
        for name in ("warm_up_learning_rate", "learning_rate", "value_learning_rate"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name):g}: between 0 and 1")
        for name in ("discount", "entropy", "explore"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"--{name} {getattr(self, name):g}: from 0 to 1")
        if self.batch > self.buffer:
            raise UsageError(f"--batch {self.batch}: more samples than --buffer {self.buffer} holds")


@dataclass(frozen=True, slots=True)
class Record:
    """A line of the learning curve. Losses are means since the line before, None where there was no update.

    ``updates``: of the phase. ``mean_jct_s``: on the validation traces. ``best``: the policy kept is this one.
    """

    phase: str
    updates: int
    traces: int
    policy_loss: float | None
    value_loss: float | None
    entropy: float | None
    reward_per_slot: float | None
    mean_jct_s: float
    best: bool
