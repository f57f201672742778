"""What a scheduler is: a pure function of a view and a seed, and what it may know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from graphcost.registry import Registry
from graphcost.sched.view import Decision, SlotView

Decide = Callable[[SlotView, int], Decision]


class Knowledge(StrEnum):
    """What a scheduler is told about speeds; a view holds no more than its scheduler declares."""

    NONE = "none"  # nothing
    SAMPLES = "samples"  # noisy measurements of trial runs and of past slots
    EXACT = "exact"  # the simulation's own speed function


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A named policy. ``decide(view, seed)`` touches neither of them and keeps no state."""

    name: str
    decide: Decide
    knows: Knowledge
    summary: str
    source: str


SCHEDULERS: Registry[Scheduler] = Registry("scheduler", "graphcost schedule list lists them")


def register(name: str, *, knows: Knowledge, summary: str, source: str) -> Callable[[Decide], Decide]:
    """Register the decorated function as the scheduler ``name``."""

    def add(decide: Decide) -> Decide:
        SCHEDULERS.add(name, Scheduler(name, decide, knows, summary, source))
        return decide

    return add
