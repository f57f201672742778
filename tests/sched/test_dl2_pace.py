"""Paces learned from slots, the worth of every action, and the update that uses it, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from graphcost.sched import Resources
from graphcost.sched.dl2.encoding import PolicySpec

torch = pytest.importorskip("torch")

from graphcost.sched.dl2.all_actions import all_actions_step  # noqa: E402  # what follows needs torch
from graphcost.sched.dl2.network import Network, probabilities  # noqa: E402
from graphcost.sched.dl2.pace import STANDING, PaceModel  # noqa: E402
from graphcost.sched.dl2.replay import Samples  # noqa: E402

SPEC = PolicySpec(("ring", "served"), window=2)
TASKS = (
    SimpleNamespace(worker=Resources.of(2, 1), ps=None),
    SimpleNamespace(worker=Resources.of(2, 1), ps=Resources.of(4, 0)),
)
CAPACITY = Resources.of(40, 10)
COSTS = np.array([[0.1, 0.0, 0.1], [0.1, 0.1, 0.15]])  # of 10 GPUs, or 40 CPUs: 1, -, 1; 1, 4, 6 (of 40)


def row(model: int, workers: int, ps: int, waited: float = 0.0) -> list[float]:
    return [float(model == 0), float(model == 1), waited, 0.5, 0.0, workers, ps]


def learned() -> PaceModel:
    """Ring jobs do w epochs a second, served ones w p / (w + p); all in 1..8."""
    model, draw = PaceModel(SPEC, 3e-3, 0, TASKS, CAPACITY), np.random.default_rng(0)
    counts = [(w, p) for w in range(1, 9) for p in range(1, 9)]
    rows = [row(0, w, 0, draw.random()) for w, _ in counts] + [row(1, w, p, draw.random()) for w, p in counts]
    paces = [float(w) for w, _ in counts] + [w * p / (w + p) for w, p in counts]
    model.add(np.array(rows, np.float32), np.array(paces, np.float32))
    for _ in range(1500):
        model.learn(128, draw)
    return model


@pytest.fixture(scope="module")
def model() -> PaceModel:
    return learned()


@pytest.mark.parametrize(
    ("job", "log_pace"),
    [
        (row(0, 4, 0), math.log(4)),
        (row(0, 4, 0, waited=7), math.log(4)),  # nor does it depend on the other columns
        (row(1, 2, 6), math.log(2 * 6 / 8)),
        (row(0, 0, 0), math.log(1) - STANDING),  # standing: as one worker, less STANDING
        (row(1, 3, 0), math.log(3 * 1 / 4) - STANDING),  # no server: as with one
    ],
)
def test_paces(model: PaceModel, job: list[float], log_pace: float) -> None:
    assert model(np.array([job], np.float32))[0] == pytest.approx(log_pace, abs=0.05)


def test_the_worth_of_all_actions_by_hand(model: PaceModel) -> None:
    """Log gains over the share of the action; shares in units of their mean, 0.55 / 6 of the cluster."""
    states = np.zeros((1, 2, SPEC.columns), np.float32)
    states[0, 0] = row(1, 2, 2)
    costs = COSTS / COSTS.mean()
    pace = lambda w, p: math.log(w * p / (w + p))  # noqa: E731
    gains = [pace(3, 2) - pace(2, 2), pace(2, 3) - pace(2, 2), pace(3, 3) - pace(2, 2)]
    worth = model.advantages(states)
    assert worth.shape == (1, SPEC.actions)
    assert worth[0, :3] == pytest.approx(gains / costs[1], abs=0.05)
    assert (worth[0, 3:] == 0).all()  # an empty position, and void


def test_a_job_that_stood_tells_nothing() -> None:
    model = PaceModel(SPEC, 1e-3, 0, TASKS, CAPACITY)
    model.add(np.array([row(0, 0, 0), row(0, 1, 0)], np.float32), np.array([0.0, 2.0], np.float32))
    assert model.size == 1


def samples(count: int) -> Samples:
    states = np.zeros((count, SPEC.window, SPEC.columns), np.float32)
    states[:, 0] = row(1, 2, 2)
    masks = np.zeros((count, SPEC.actions), bool)
    masks[:, [0, 1, 2, SPEC.void]] = True
    rest = np.zeros(count, np.float32)
    return Samples(states, masks, np.zeros(count, np.int64), rest, rest > 0, states[:, 0], states)


@pytest.mark.parametrize(
    ("worth", "chosen"),
    [
        ([0.1, 0.3, 0.2, 9, 9, 9, 0], 1),  # the best of those allowed; the masked 9 count for nothing
        ([-0.1, -0.3, -0.2, 9, 9, 9, 0], SPEC.void),  # nothing helps: stop
        ([1e-4, 0, 0, 9, 9, 9, 0], None),  # within the error of what is learned: hardly moved
    ],
)
def test_an_update_goes_to_the_best_action(worth: list[float], chosen: int | None) -> None:
    policy, drawn = Network(SPEC, value=False, seed=0), samples(4)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
    before = probabilities(policy, drawn.states[0], drawn.masks[0])
    for _ in range(200):
        loss = all_actions_step(policy, optimizer, drawn, np.array([worth] * 4, np.float32), 0.0)
    after = probabilities(policy, drawn.states[0], drawn.masks[0])
    assert (after[3:6] == 0).all() and np.isfinite(loss.policy)
    if chosen is None:
        assert after == pytest.approx(before, abs=0.05)
    else:
        assert after[chosen] > 0.9 > before[chosen]


def test_entropy_alone_evens_the_policy_out() -> None:
    policy, drawn = Network(SPEC, value=False, seed=0), samples(4)
    optimizer, none = torch.optim.SGD(policy.parameters(), lr=0.05), np.zeros((4, SPEC.actions), np.float32)
    for _ in range(300):
        loss = all_actions_step(policy, optimizer, drawn, none, 1.0)
    assert loss.entropy == pytest.approx(math.log(4), abs=1e-3)
