"""The plan of one training step: operators by phase, gradients, memory; no hardware, no graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphcost.ir import OpCost, Phase
from graphcost.ops import OpClass
from graphcost.recipe import Optimizer, Precision, Recipe
from graphcost.training.gradients import Gradient
from graphcost.training.memory import Memory
from graphcost.training.work import Work


@dataclass(frozen=True, slots=True)
class PlannedOp:
    """Something that runs in one phase, on behalf of the operator ``id``.

    ``cost`` covers all its trips; None: no rule. ``dtype`` is the format it computes in.
    ``launches``: kernels per trip, 0 for views and for what rides in another's kernel.
    ``work``: what the kernel does; None where nothing is known beyond ``op_class``.
    """

    id: str
    name: str
    op_type: str
    op_class: OpClass | None
    phase: Phase
    cost: OpCost | None
    repeat: int = 1
    dtype: str = "float32"
    launches: int = 1
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class StepBytes:
    """Memory traffic of the forward pass, counted three ways.

    ``eager_bytes``: every kernel reads its inputs and writes its outputs. ``fused_bytes``:
    what stays when pointwise chains ride in their producers. ``weights_bytes``: every
    parameter once, of tables the rows that are looked up: the least that any execution moves.
    """

    eager_bytes: int
    fused_bytes: int
    weights_bytes: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One training step on one replica, before any hardware; holds no graph.

    ``updates``: what runs over every gradient after the backward pass, one entry a
    gradient, in the gradients' order.
    """

    forward: tuple[PlannedOp, ...]
    backward: tuple[PlannedOp, ...]
    updates: tuple[PlannedOp, ...]
    gradients: tuple[Gradient, ...]
    input_bytes: int
    batch: int | None
    recipe: Recipe
    memory: Memory
    bytes: StepBytes

    @property
    def update(self) -> OpCost:
        """Everything after the backward pass."""
        return total_cost(self.updates)

    @property
    def precision(self) -> Precision:
        """The recipe's."""
        return self.recipe.precision

    @property
    def optimizer(self) -> Optimizer:
        """The recipe's."""
        return self.recipe.optimizer

    @property
    def gradient_bytes(self) -> int:
        """All gradients, tables dense."""
        return sum(gradient.bytes for gradient in self.gradients)

    @property
    def dense_gradients(self) -> tuple[Gradient, ...]:
        """Gradients that an exchange by rows leaves dense."""
        return tuple(g for g in self.gradients if g.rows_bytes is None)

    @property
    def rows_bytes(self) -> int:
        """Touched rows of all lookup tables."""
        return sum(g.rows_bytes for g in self.gradients if g.rows_bytes is not None)

    def total(self, phase: Phase) -> OpCost:
        """Summed cost of a phase; operators without a rule are not in it."""
        if phase is Phase.UPDATE:
            return self.update
        return total_cost(self.forward if phase is Phase.FORWARD else self.backward)


def total_cost(ops: Iterable[PlannedOp]) -> OpCost:
    """Sum over operators that have a cost."""
    matmul = elementwise = read = write = 0
    for op in ops:
        if op.cost is not None:
            matmul += op.cost.matmul_flops
            elementwise += op.cost.elementwise_flops
            read += op.cost.read_bytes
            write += op.cost.write_bytes
    return OpCost(matmul, elementwise, read, write)
