"""The fit of the host's launches: constants and machines that made the rows come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy", reason="needs graphcost[fit]")

from benchmarks.fit.host import Problem, Step, step_of
from graphcost.validation import Outcome, Predictor, read_table

MEASURED = Path(__file__).parents[2] / "benchmarks" / "measured"
FORWARD_S, BACKWARD_S = 30e-6, 50e-6
MACHINES = {"slow": 1.5, "fast": 1 / 1.5}


def made(index: int, rng: np.random.Generator) -> Step:
    """A step that takes the longer of a GPU and a host; a third of them wait for the GPU."""
    machine = ("slow", "fast")[index % 2]
    forward, backward = (int(count) for count in rng.integers(50, 500, 2))
    host_s = MACHINES[machine] * (FORWARD_S * forward + BACKWARD_S * backward)
    gpu_s = host_s * (2.0 if index % 3 == 0 else 0.3)
    return Step(f"family{index % 5}", machine, gpu_s, forward, backward, max(gpu_s, host_s))


def test_the_fit_finds_the_constants_that_made_the_rows() -> None:
    rng = np.random.default_rng(0)
    problem = Problem([made(index, rng) for index in range(60)])
    theta = np.exp(problem.solve(np.ones(60, bool)))
    assert theta[:2] == pytest.approx([FORWARD_S, BACKWARD_S], rel=0.02)
    assert dict(zip(problem.machines, theta[2:], strict=True)) == pytest.approx(MACHINES, rel=0.02)
    seconds, bound = problem.held_out()
    assert bound.sum() == 40
    assert seconds == pytest.approx(problem.seconds, rel=0.05)


def test_a_measured_row_counts_its_launches_and_the_gradients_zeroed_and_added_to() -> None:
    row = next(
        row
        for row in read_table(MEASURED / "dlperf_v100.csv")
        if row.gpus == 1 and row.model_id == "resnet50" and row.precision == "FP32"
    )
    (outcome,) = Predictor().predict([row])
    found = step_of(outcome)
    assert found is not None and found.family == "resnet" and found.seconds == row.step_s
    # 161 parameter tensors; 53 convolutions, 53 norms, 49 ReLU, 16 sums, two poolings, one product and the loss
    assert found.forward >= 161 + 53 + 53 + 49 + 16 + 3
    assert found.backward > found.forward
    assert step_of(Outcome(row, None, None, "skipped")) is None
