"""What a training run shares with those of other clusters; alone, nothing (see ``federated``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Turn:
    """After a slot: ``learn``: updates are due; ``going``: some cluster's trace goes on."""

    learn: bool
    going: bool


class Sharing:
    """A cluster by itself."""

    @property
    def leads(self) -> bool:
        """Whether it validates."""
        return True

    @property
    def stream(self) -> tuple[int, ...]:
        """What its random numbers are drawn from, beside the seed."""
        return ()

    def traces(self, seeds: Sequence[int]) -> Sequence[int]:
        """Its own of the training traces."""
        return seeds

    def turn(self, ready: bool, *, going: bool) -> Turn:
        """A slot has run, or the trace is over (not ``going``); ``ready``: its replay can be drawn from."""
        return Turn(ready and going, going)

    def join(self, optimizer: torch.optim.Optimizer) -> None:
        """Steps of a shared network."""
