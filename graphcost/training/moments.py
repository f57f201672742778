"""Memory over a training step, moment by moment: the walk of ``memory``, written down. For pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphcost.ir import Param
from graphcost.recipe import Recipe
from graphcost.training.memory import Life, Step, update_temporaries


@dataclass(frozen=True, slots=True)
class Moment:
    """What a step holds beside weights, state and buffers once ``op_id`` has what it needs.

    ``kept_bytes``: for the backward pass. ``gradient_bytes``: of parameters.
    ``temporary_bytes``: everything else that is alive.
    """

    phase: str
    op_id: str
    kept_bytes: int
    gradient_bytes: int
    temporary_bytes: int

    @property
    def total_bytes(self) -> int:
        """All three together."""
        return self.kept_bytes + self.gradient_bytes + self.temporary_bytes


@dataclass(slots=True)
class _Written(Life):
    """A life that keeps every moment, not only the largest."""

    ids: Sequence[str] = ()
    moments: list[Moment] = field(default_factory=list)

    def note(self, phase: str) -> None:
        Life.note(self, phase)  # slots and dataclass make a new class: super() would not find it
        now = self.now
        rest = now.total - now.kept - now.gradients
        self.moments.append(Moment(phase, self.ids[self.position], now.kept, now.gradients, rest))


def moments_of(
    step: Step, ids: Sequence[str], params: Mapping[str, Param], gradient_bytes: Mapping[str, int], recipe: Recipe
) -> tuple[Moment, ...]:
    """Every moment of a step, in order; ``ids``: whose each operator of ``step`` is. The last is the update."""
    life = _Written(step, gradient_bytes, ids=ids)
    life.run(recipe)
    if not recipe.trains:
        return tuple(life.moments)
    made = update_temporaries(params, gradient_bytes, recipe)
    return (*life.moments, Moment("update", "", 0, sum(gradient_bytes.values()), made))
