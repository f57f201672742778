"""The fit of the device model: traces at another batch, splits by family, constants that come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy", reason="needs graphcost[fit]")

from benchmarks.fit._features import Features, with_fast_norms
from benchmarks.fit._problem import Problem, Sample, folds, held_out, scores
from benchmarks.fit._timm_tables import family_of
from benchmarks.fit.device import start_values
from benchmarks.fit.graphs import TRACE_BATCH, at_batch
from graphcost.models_zoo import build


@pytest.mark.parametrize("name", ["resnet18", "mobilenet-v2", "bert-base"])
def test_a_trace_at_another_batch_is_the_network_at_that_batch(name: str) -> None:
    assert at_batch(build(name, batch=TRACE_BATCH), 8) == build(name, batch=8)


def test_a_family_is_in_one_fold_and_folds_are_even() -> None:
    groups = [family for family, count in (("a", 5), ("b", 4), ("c", 3), ("d", 2), ("e", 1)) for _ in range(count)]
    found = folds(groups, 3)
    assert all(len({int(f) for f, g in zip(found, groups, strict=True) if g == one}) == 1 for one in "abcde")
    assert max(np.bincount(found)) <= 8


def test_families_go_by_name() -> None:
    names = {"tf_efficientnet_b0": "efficientnet", "seresnext26d_32x4d": "resnext", "resnest50d": "resnest"}
    assert {name: family_of(name) for name in names} == names


def sample(index: int, rng: np.random.Generator) -> Sample:
    """A made-up step of two kinds of kernels whose true shares are 0.9 and 0.6."""
    matrix, memory = rng.uniform(0.01, 0.1, 2)
    terms = np.array([[matrix, 0, 0, 0, 0, 1, 0], [0, 0, memory, 0, 0, 1, 0]])
    features = Features(("conv", "pointwise"), terms, (0, 0, 0))
    return Sample(f"net{index}", f"family{index % 7}", features, matrix / 0.9 + memory / 0.6)


def test_the_fit_finds_the_constants_that_made_the_rows() -> None:
    rng = np.random.default_rng(0)
    problem = Problem([sample(i, rng) for i in range(60)], start_values(), (0.0, 0.0, 0.0), 5e-6)
    theta = dict(zip(problem.names, np.exp(problem.solve(np.ones(60, bool))), strict=True))
    assert theta["conv.compute"] == pytest.approx(0.9, rel=0.02)
    assert theta["pointwise.memory"] == pytest.approx(0.6, rel=0.02)
    assert theta["conv.memory"] == pytest.approx(start_values()["conv.memory"], rel=1e-3)
    assert scores(held_out(problem, deals=1)[0], problem.seconds).median < 0.02


def test_slopes_are_those_of_the_prediction() -> None:
    rng = np.random.default_rng(1)
    problem = Problem([sample(i, rng) for i in range(5)], start_values(), (0.0, 0.0, 0.0), 5e-6)
    seconds, slope = problem.predict(problem.theta0)
    for index in range(len(problem.names)):
        step = np.zeros(len(problem.names))
        step[index] = 1e-6
        assert (problem.predict(problem.theta0 + step)[0] - seconds) / 1e-6 == pytest.approx(
            slope[:, index], abs=1e-6
        )


def test_fast_norms_are_those_of_the_library() -> None:
    model = build("bert-base", batch=1)
    norm = next(node for node in model.nodes if node.op_type == "LayerNormalization")
    theirs = replace(model, nodes=(replace(norm, origin="aten.layer_norm at timm/layers/norm.py:89"), norm))
    first, second = with_fast_norms(theirs).nodes
    assert first.attrs.get("autocast") == "half" and "autocast" not in second.attrs
