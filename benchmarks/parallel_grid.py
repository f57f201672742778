"""vTrain's grid of tensor, pipeline and data parallelism: is the mesh predicted best as good as the measured best?

A case is one model, micro-batch, global batch and number of GPUs with several meshes timed.
Usage: python -m benchmarks.parallel_grid vtrain_ground_truth.csv [--gpus 8] [--jobs]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from graphcost.validation.predicting import Outcome, Predictor
from graphcost.validation.tables import MeasuredRow, read_table

TARGET = 0.8
"""Share of the jobs whose choice is right; less exits 1."""

NEAR = 0.05
"""A choice this near the measured best counts as right."""


@dataclass(frozen=True)
class Case:
    """Meshes of one job. ``loss``: how much slower the chosen one was than the best, measured; ``rule_loss``: that
    of the mesh with the most replicas, which takes no prediction."""

    model: str
    gpus: int
    meshes: int
    chosen: str
    best: str
    loss: float
    rule_loss: float


def samples(row: MeasuredRow) -> int:
    """Of a step: micro-batch x micro-batches x replicas."""
    dp = next(int(word[2:]) for word in row.arch.split() if word.startswith("DP"))
    return int(row.batch or 0) * row.accumulate * dp


def cases(outcomes: Iterable[Outcome]) -> list[Case]:
    """Jobs with at least three meshes."""
    groups: dict[tuple[str, int, int], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        if one.step is not None and one.row.step_s:
            groups[one.row.model_id, one.row.gpus or 1, samples(one.row)].append(one)
    found = []
    for (model, gpus, _), rows in sorted(groups.items()):
        if len({one.row.arch for one in rows}) < 3:
            continue
        best = min(rows, key=lambda one: one.row.step_s or 0.0)
        chosen = min(rows, key=lambda one: one.step.step_s if one.step else 0.0)
        rule = max(rows, key=lambda one: (_size(one, "DP"), -_size(one, "TP")))  # replicas, then pipeline
        least = best.row.step_s or 1.0
        found.append(
            Case(
                model,
                gpus,
                len(rows),
                chosen.row.arch,
                best.row.arch,
                (chosen.row.step_s or 0.0) / least - 1,
                (rule.row.step_s or 0.0) / least - 1,
            )
        )
    return found


def _size(one: Outcome, dimension: str) -> int:
    return next(int(word[2:]) for word in one.row.arch.split() if word.startswith(dimension))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--jobs", action="store_true", help="one line a job")
    given = parser.parse_args()
    rows = [row for row in read_table(given.table) if row.gpus == given.gpus and row.arch.startswith("TP")]
    rows.sort(key=lambda row: (row.model_id, row.batch or 0, row.arch))
    outcomes = list(Predictor().predict(rows))
    found = cases(outcomes)
    errors = [abs(one.error) for one in outcomes if one.error is not None]
    print(f"{len(rows)} rows on {given.gpus} GPUs, {len(errors)} predicted, median error {median(errors):.1%}")
    if given.jobs:
        for one in found:
            print(f"{one.model:16} {one.meshes:3} meshes, chosen {one.chosen}, best {one.best}: {one.loss:+.1%}")
    by_model: dict[str, list[Case]] = defaultdict(list)
    for one in found:
        by_model[one.model].append(one)
    for model, jobs in by_model.items():
        print(f"{model:16} {len(jobs):3} jobs, within {NEAR:.0%}: {_share(jobs):.0%}, median loss {_loss(jobs):.1%}")
    print(f"all {len(found)} jobs: within {NEAR:.0%}: {_share(found):.0%}, median loss {_loss(found):.1%}")
    ruled = sum(one.rule_loss <= NEAR for one in found) / len(found)
    print(f"most replicas, without a prediction: within {NEAR:.0%} {ruled:.0%}")
    return 0 if _share(found) >= TARGET else 1


def _share(found: list[Case]) -> float:
    return sum(one.loss <= NEAR for one in found) / len(found)


def _loss(found: list[Case]) -> float:
    return median(one.loss for one in found)


if __name__ == "__main__":
    raise SystemExit(main())
