"""What a change of a job's tasks costs: hot scaling, checkpoint and restart, or nothing.

Counts are compared, not node numbers: equal nodes are taken to keep their tasks wherever the counts allow.
The first start is free for every scheduler. Figures and sources: ``scaling.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from graphcost.registry import Registry


@dataclass(frozen=True, slots=True)
class Scaling:
    """``seconds[k - 1]``: k parameter servers added at once; see ``scaling.toml`` for the rest."""

    name: str
    source: str
    seconds: tuple[float, ...]
    further_s_per_task: float
    any_change_s: float
    resume_s: float

    def cost_s(self, before: tuple[int, int], after: tuple[int, int], *, started: bool) -> float:
        """Seconds off the slot for going from (workers, servers) to others.

        ``started``: the job ran before. A job without parameter servers adds workers in their place.
        """
        if not started or before == after or not sum(after):
            return 0.0
        if not sum(before):
            return self.resume_s
        has_ps = after[1] > 0 or before[1] > 0
        added = after[1] - before[1] if has_ps else after[0] - before[0]
        if added <= 0:
            return self.any_change_s
        known = len(self.seconds)
        return self.seconds[min(added, known) - 1] + max(0, added - known) * self.further_s_per_task


@cache
def scalings() -> Registry[Scaling]:
    """By name, in the order of the file."""
    found: Registry[Scaling] = Registry("scaling cost", "hot, checkpoint, slow-checkpoint, none")
    table = tomllib.loads(files("graphcost.sim").joinpath("scaling.toml").read_text("utf-8"))
    for name, entry in table.items():
        found.add(name, Scaling(name, **{**entry, "seconds": tuple(entry["seconds"])}))
    return found
