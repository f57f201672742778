"""What libraries around torch's training loop make the host do in every step: one entry of ``trainers.toml`` each.

A library that takes statistics of gradients runs its small kernels once per parameter
tensor after the backward pass and reads the sums back, so that the host cannot run ahead
into the next step: forward and backward passes are one stretch, the update another.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from graphcost.ir import Phase
from graphcost.registry import Registry

Stretches = tuple[tuple[Phase, ...], ...]
"""Phases through which the host runs ahead of the GPU; between two of them it waits."""

TORCH = "torch"
"""torch's own loop, which adds nothing."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """Host seconds of a step beside launches: ``tensor_s`` per parameter tensor.

    ``reads_back``: the host waits for the gradients before its part, which ends the step.

    >>> Trainer("x", tensor_s=0.5e-3, reads_back=True).host_s(100)
    0.05
    """

    name: str
    tensor_s: float = 0.0
    reads_back: bool = False

    def host_s(self, parameter_tensors: int) -> float:
        """Seconds added to the update."""
        return self.tensor_s * parameter_tensors

    @property
    def stretches(self) -> Stretches:
        """All phases in one, or the update apart."""
        both = (Phase.FORWARD, Phase.BACKWARD)
        return (both, (Phase.UPDATE,)) if self.reads_back else ((*both, Phase.UPDATE),)


def _read() -> Registry[Trainer]:
    known: Registry[Trainer] = Registry("trainer")
    known.add(TORCH, Trainer(TORCH))
    text = files("graphcost.engine").joinpath("trainers.toml").read_text("utf-8")
    for name, entry in tomllib.loads(text).items():
        known.add(name, Trainer(name, entry["tensor_s"], entry["reads_back"]))
    return known


TRAINERS = _read()
"""All of them, ``torch`` first."""
