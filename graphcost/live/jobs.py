"""What a live run is told, the jobs it trains, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphcost.errors import UsageError


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Names and defaults are the command line's.

    ``steps``: of the longest job, the others in proportion to their epochs. ``batch``: samples of a step, split among
    the workers. ``checkpoint_every``: steps between checkpoints, the most that a lost worker makes a job do again.
    ``real_slot_s``: between decisions, by the clock. ``slots``: jobs unfinished by then are reported so.
    ``patience_s``: a group of workers that answers nothing for so long is taken as lost.
    """

    steps: int = 2000
    batch: int = 64
    checkpoint_every: int = 20
    real_slot_s: float = 3.0
    slots: int = 100
    patience_s: float = 60.0

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "checkpoint_every", "slots"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")
        for name, value in (("real-slot", self.real_slot_s), ("patience", self.patience_s)):
            if not 0 < value < float("inf"):
                raise UsageError(f"--{name} {value:g}: more than 0 seconds")


@dataclass(frozen=True, slots=True)
class LiveJob:
    """One regression by a small perceptron; ``seed``: of its weights and of every step's samples.

    ``batch`` samples a step, whatever the number of workers. Sizes and rates are assumed: a step is to take
    milliseconds, so that resizing can be watched on one machine.
    """

    job_id: str
    seed: int
    steps: int
    batch: int
    features: int = 16
    hidden: int = 256
    learning_rate: float = 0.05
    momentum: float = 0.9


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A job after ``step`` steps, in memory: weights and optimiser as torch's state dicts."""

    step: int
    weights: Mapping[str, Any]
    optimizer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Steps that a group did: the loss of each over its whole batch, the time; the checkpoint is rank 0's."""

    losses: tuple[float, ...]
    run_s: float
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker's word that its group has broken: a peer is gone or silent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A job after a slot: steps done since its start, steps and seconds of the slot, groups lost in it.

    ``finish_s``: on the engine's clock, None before the end. ``failed``: why it was given up, None while it was not.
    """

    steps_done: int
    steps: int
    run_s: float
    restarts: int
    finish_s: float | None
    failed: str | None
