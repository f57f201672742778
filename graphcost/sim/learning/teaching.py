"""A teacher's schedules of the training traces as labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphcost.errors import UsageError
from graphcost.sched import Scheduler
from graphcost.sched.dl2.encoding import PolicySpec
from graphcost.sched.dl2.warm_up import Labels, labels_of
from graphcost.sim.jobs import Job
from graphcost.sim.setup import Setup
from graphcost.sim.simulation import Simulation

LABELS_KEPT = 100_000
"""assumed: samples of all traces together, drawn evenly; a state of 40 jobs takes 2 kB."""


def taught(
    setup: Setup,
    teacher: Scheduler,
    spec: PolicySpec,
    traces: Sequence[tuple[int, Sequence[Job]]],
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> Labels:
    """Every increment of ``teacher`` on the (seed, jobs) of ``traces``. Raises ``UsageError`` where there is none."""
    parts: list[Labels] = []
    for position, (seed, jobs) in enumerate(traces, start=1):
        progress(f"{teacher.name} shows trace {position} of {len(traces)}")
        states: list[np.ndarray] = []
        masks: list[np.ndarray] = []
        actions: list[int] = []
        run = Simulation(list(jobs), setup.cluster, setup.speeds, setup.settings(seed), knows=teacher.knows)
        while not run.done:
            view = run.view()
            decision = teacher.decide(view, seed)
            for state, mask, action in labels_of(view, decision, spec):
                states.append(state)
                masks.append(mask)
                actions.append(action)
            run.run_slot(decision.grants)
        if actions:
            kept = np.random.default_rng(seed).permutation(len(actions))[: LABELS_KEPT // len(traces)]
            parts.append(Labels(np.stack(states)[kept], np.stack(masks)[kept], np.array(actions)[kept]))
    if not parts:
        raise UsageError(f"--teacher {teacher.name}: its schedules hold no action to learn (all jobs at their caps?)")
    return Labels(
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.masks for part in parts]),
        np.concatenate([part.actions for part in parts]),
    )
