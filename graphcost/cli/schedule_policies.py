"""Policy files of ``schedule train`` as schedulers of ``schedule compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphcost.sched import Scheduler
from graphcost.sim.setup import Setup


def learned_schedulers(files: Sequence[Path], *, sampled: bool) -> list[Scheduler]:
    """One a file: ``dl2``, or ``dl2:NAME`` where there are several. Raises ``DataFileError``."""
    if not files:
        return []
    from graphcost.sched.dl2.checkpoint import load_policy

    names = ["dl2"] if len(files) == 1 else [f"dl2:{file.stem}" for file in files]
    return [load_policy(file, sampled=sampled)[0].scheduler(name) for file, name in zip(files, names, strict=True)]


def new_models(files: Sequence[Path], setup: Setup) -> list[str]:
    """A sentence a policy that was trained without some of the setup's models."""
    if not files:
        return []
    from graphcost.sched.dl2.checkpoint import load_policy

    notes = []
    for file in files:
        known = load_policy(file)[0].spec.models
        new = [model.name for model in setup.workload.models if model.name not in known]
        if new:
            notes.append(f"{file}: trained without {', '.join(new)}; it tells none of them apart")
    return notes
