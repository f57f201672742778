"""A batch of the whole job, dealt out over replicas and micro-batches."""

from __future__ import annotations

from dataclasses import replace

from graphcost.errors import UsageError
from graphcost.placing import AnalysisOptions, Choice


def at_global_batch(options: AnalysisOptions, choice: Choice) -> AnalysisOptions:
    """``options`` with the samples of a GPU and micro-batch that make ``global_batch`` a step, where one is asked.

    Raises ``UsageError`` where the job's replicas and micro-batches do not divide it.
    """
    samples = options.global_batch
    if samples is None:
        return options
    if options.load.batch is not None:
        raise UsageError("--global-batch and --batch are two ways to say one thing; give one")
    parts = choice.replicas * choice.recipe.accumulate
    if samples < 1 or samples % parts:
        fits = parts * max(1, samples // parts)
        near = f"{fits}" if samples < parts else f"{fits} or {fits + parts}"
        raise UsageError(
            f"--global-batch {samples}: {choice.replicas} x {choice.recipe.accumulate} (replicas, micro-batches) of "
            f"--arch {choice.arch.name} do not divide it; {near} would"
        )
    return replace(options, load=replace(options.load, batch=samples // parts))
