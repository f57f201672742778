"""From recorded rows to jobs: a model each, and as many epochs as take the recorded time on the GPUs asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphcost.errors import UnknownNameError, UsageError
from graphcost.registry import did_you_mean
from graphcost.sim.jobs import Job, SimCluster, TrainedModel
from graphcost.sim.speeds import SpeedModel
from graphcost.sim.traces.reading import Trace, TraceRow
from graphcost.sim.workloads.generate import job_of, requested_epochs_per_s
from graphcost.sim.workloads.seeds import FIFTHS, Split
from graphcost.sim.workloads.workload import Workload


def rows_of(
    trace: Trace, count: int | None = None, *, part: int = 1, split: Split | None = None, seed: int = 0
) -> tuple[TraceRow, ...]:
    """The first ``count`` rows of a part; under ``split`` a window drawn from that split's share of the file.

    Of a file with several parts a split takes whole parts, else fifths of the rows: windows of different
    splits never meet. Raises ``UsageError`` where there are not enough.
    """
    parts = trace.parts
    if not 1 <= part <= len(parts):
        raise UsageError(f"--part {part}: the trace has {len(parts)} part{'s' if len(parts) > 1 else ''}")
    if split is None:
        return _first(parts[part - 1], count, "the trace")
    low, high = FIFTHS[split]
    draw = np.random.default_rng((seed, 3))
    if len(parts) > 1:
        mine = parts[round(low * len(parts)) : round(high * len(parts))]
        if not mine:
            raise UsageError(f"the trace has {len(parts)} parts, too few for one of {split}")
        return _first(mine[int(draw.integers(len(mine)))], count, f"a {split} part")
    rows = parts[0][round(low * len(parts[0])) : round(high * len(parts[0]))]
    count = len(rows) if count is None else count
    if not 0 < count <= len(rows):
        raise UsageError(f"--count {count}: the {split} share of the trace has {len(rows)} jobs")
    start = int(draw.integers(len(rows) - count + 1))
    return rows[start : start + count]


def _first(rows: Sequence[TraceRow], count: int | None, what: str) -> tuple[TraceRow, ...]:
    if count is not None and not 0 < count <= len(rows):
        raise UsageError(f"--count {count}: {what} has {len(rows)} jobs")
    return tuple(rows[:count])


def jobs_of(
    rows: Sequence[TraceRow], workload: Workload, speeds: SpeedModel, cluster: SimCluster, seed: int, *,
    known_models: bool = False,
) -> tuple[tuple[Job, ...], tuple[str, ...]]:  # fmt: skip
    """The jobs, arrivals from 0 on, and notes on what was assumed or cut.

    A model that the workload lacks is drawn from it; under ``known_models`` raises ``UnknownNameError``.
    """
    draw = np.random.default_rng((seed, 4))
    by_name = {model.name: model for model in workload.models}
    drawn = [
        (model, weight) for model, weight in zip(workload.models, workload.weights, strict=True) if _on_gpu(model)
    ]
    if not drawn:
        raise UsageError(f"workload {workload.name}: none of its models uses a GPU, the trace's jobs do")
    weights = np.array([weight for _, weight in drawn]) / sum(weight for _, weight in drawn)
    first_s = min(row.submit_s for row in rows)
    notes: Counter[str] = Counter()
    jobs = []
    for row in rows:
        chosen = drawn[int(draw.choice(len(drawn), p=weights))][0]
        hours = float(draw.random())
        model = by_name.get(row.model or "", chosen)
        if row.model is None:
            notes["have no model in the trace; drawn from the workload's"] += 1
        elif model.name != row.model and known_models:
            raise UnknownNameError(
                f"job {row.job_id}: workload {workload.name} has no model named {row.model!r}"
                f"{did_you_mean(row.model, by_name)} ({', '.join(by_name)})"
            )
        elif model.name != row.model:
            notes[f"train {row.model}, which the workload does not have; drawn from its models"] += 1
        if row.worker is not None:
            model = replace(model, worker=row.worker)
        if row.gpus > workload.max_workers:
            notes[f"asked for more than {workload.max_workers} workers; cut to that"] += 1
        job = job_of(workload, row.job_id, row.submit_s - first_s, model, 1.0, row.gpus)
        epochs = row.epochs
        if epochs is None:
            duration_s = _duration_s(row, hours)
            epochs = duration_s * requested_epochs_per_s(workload, model, speeds, cluster, row.gpus)
        if row.gpu_hours is not None:
            notes["have no run time in the trace; GPU hours drawn from their application's class (assumed)"] += 1
        jobs.append(replace(job, epochs=epochs))
    return tuple(jobs), tuple(f"{count:,} jobs {note}" for note, count in notes.items())


def _duration_s(row: TraceRow, uniform: float) -> float:
    """As recorded, or log-uniform in its GPU hours."""
    if row.duration_s is not None:
        return row.duration_s
    low, high = row.gpu_hours or (0.1, 1.0)
    hours = low * float((high / low) ** uniform)
    return 3600.0 * hours / row.gpus


def _on_gpu(model: TrainedModel) -> bool:
    return model.worker.gpu_milli > 0
