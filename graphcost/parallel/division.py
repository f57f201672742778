"""A step divided over a mesh: what one GPU of every stage runs, sends and holds."""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.ir import Phase
from graphcost.network import Collective
from graphcost.parallel.mesh import Mesh
from graphcost.training import Memory, StepPlan


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one micro-batch moves in a group (``tp`` or ``ep``) in one pass: payload bytes of every call."""

    group: str
    phase: Phase
    collective: Collective
    sizes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StageShare:
    """One GPU's part of a stage. ``plan``: of one micro-batch, with the memory of one.

    ``received_bytes``: from the stage before, for every chunk; ``gathered_bytes``: what of it every
    GPU of the tensor parallel group needs whole, although each receives a share. ``summed_bytes``:
    gradients of what is held whole, summed over the tensor parallel group once a step.
    ``expert_params``: parameters that the data parallel group divides. ``kept``: micro-batches whose
    activations it holds at once. ``look``: equal for stages of the same operators.
    """

    plan: StepPlan
    traffic: tuple[Traffic, ...]
    received_bytes: tuple[float, ...] = ()
    gathered_bytes: tuple[float, ...] = ()
    summed_bytes: float = 0.0
    expert_params: frozenset[str] = frozenset()
    kept: float = 1.0
    look: int = 0

    def held(self, memory: Memory) -> Memory:
        """``memory`` of one micro-batch with the activations of all that the stage keeps."""
        more = int((self.kept - 1) * memory.activations_bytes)
        return memory.with_kept(more)


@dataclass(frozen=True, slots=True)
class DividedPlan(StepPlan):
    """The plan of one replica, whose counts these are, and its division.

    ``notes``: what a reader must know, as what is repeated on every GPU of a group.
    ``tied_bytes``: gradients of parameters that two stages hold, summed between them.
    """

    mesh: Mesh
    stages: tuple[StageShare, ...]
    tied_bytes: float = 0.0
    notes: tuple[str, ...] = ()
