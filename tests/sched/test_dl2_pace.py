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
CAPS = 8, 8


def row(model: int, workers: int, ps: int, waited: float = 0.0) -> list[float]:
    return [float(model == 0), float(model == 1), waited, 0.5, 0.0, workers, ps]


def fresh() -> PaceModel:
    return PaceModel(SPEC, 3e-3, 0, TASKS, CAPS, CAPACITY)


def learned() -> PaceModel:
    """Ring jobs do w epochs a second, served ones w p / (w + p); all but 4 workers with 4 servers were seen."""
    model, draw = fresh(), np.random.default_rng(0)
    counts = [(w, p) for w in range(1, 9) for p in range(1, 9) if (w, p) != (4, 4)]
    rows = [row(0, w, 0, draw.random()) for w, _ in counts] + [row(1, w, p, draw.random()) for w, p in counts]
    paces = [float(w) for w, _ in counts] + [w * p / (w + p) for w, p in counts]
    for _ in range(20):
        model.add(np.array(rows, np.float32), np.array(paces, np.float32))
    for _ in range(1500):
        model.learn(128, draw)
    return model


@pytest.fixture(scope="module")
def model() -> PaceModel:
    return learned()


@pytest.mark.parametrize(
    ("tasks", "log_pace"),
    [
        ((0, 4, 0), math.log(4)),
        ((1, 2, 6), math.log(2 * 6 / 8)),
        ((1, 4, 4), math.log(4 * 4 / 8)),  # never seen: the network's
        ((0, 0, 0), math.log(1) - STANDING),  # standing: as one worker, less STANDING
        ((1, 0, 0), math.log(1 / 2) - STANDING),
        ((1, 0, 3), math.log(3 / 4) - STANDING),
        ((1, 3, 0), math.log(3 / 4) - STANDING),  # no server: as with one
    ],
)
def test_paces(model: PaceModel, tasks: tuple[int, int, int], log_pace: float) -> None:
    assert model.table()[tasks] == pytest.approx(log_pace, abs=0.06)


def test_worths_by_hand(model: PaceModel) -> None:
    """Of a served job with 2 and 2: a task costs 0.1 of the GPUs or CPUs, the unit; both 6 of 40 CPUs, 1.5 units.

    log(w p / (w + p)) is 0 there; +1 worker: log(6/5) / 1 = 0.182, +1 server the same; +1 of both: log(3/2) / 1.5
    = 0.270; +2 workers +1 server: log(12/7) / 2 = 0.269; +2 of both: log(2) / 3 = 0.231. The best goes with each.
    """
    assert model.worths()[1, 2, 2] == pytest.approx([0.270, 0.270, 0.270], abs=0.03)
    assert model.worths()[1, 8, 8].tolist() == [0, 0, 0]
    assert model.worths()[0, 7, 0, 0] == pytest.approx(math.log(8 / 7), abs=0.02)


def test_tasks_that_pay_only_together_are_worth_it() -> None:
    """Three workers are slower than two, four twice as fast: 2 -> 4 is log(2) for two tasks; from 4 nothing pays."""
    model = fresh()
    paces = {1: 0.5, 2: 1.0, 3: 0.9, 4: 2.0, 5: 1.0, 6: 1.0, 7: 1.0, 8: 1.0}
    rows = np.array([row(0, w, 0) for w in paces] * 500, np.float32)
    model.add(rows, np.array([*paces.values()] * 500, np.float32))
    workers = model.worths()[0, :, 0, 0]
    assert workers[2] == pytest.approx(math.log(2) / 2, abs=0.01) and workers[3] > workers[2]
    assert workers[4] == pytest.approx(-math.log(2) / 4, abs=0.01)  # the least loss: four more, for the same 1.0


def test_servers_are_nothing_to_a_job_that_has_none() -> None:
    """Eight workers are no faster than one: no task is worth anything, whatever the network guesses of servers."""
    model, draw = fresh(), np.random.default_rng(0)
    for _ in range(50):
        model.add(np.array([row(0, w, 0) for w in range(1, 9)], np.float32), np.full(8, 2.0, np.float32))
        model.add(np.array([row(1, w, p) for w in (1, 8) for p in (1, 8)], np.float32), np.array([1, 9, 1, 9], "f4"))
    for _ in range(200):
        model.learn(64, draw)
    table = model.table()
    assert np.ptp(table[0], axis=1).max() == 0
    assert model.worths()[0, 1, 0, 0] == pytest.approx(0, abs=0.01)


def test_worths_of_a_state(model: PaceModel) -> None:
    states = np.zeros((1, 2, SPEC.columns), np.float32)
    states[0, 0] = row(1, 2, 2)
    worths = np.arange(2 * 9 * 9 * 3, dtype=np.float32).reshape(2, 9, 9, 3)
    assert model.advantages(states, worths)[0].tolist() == [*worths[1, 2, 2].tolist(), 0, 0, 0, 0]


def test_a_restored_pace_model_is_the_same(model: PaceModel) -> None:
    other = fresh()
    other.restore(model.contents())
    assert np.array_equal(other.table(), model.table())


def test_a_job_that_stood_tells_nothing() -> None:
    model = fresh()
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
    ],
)
def test_an_update_goes_to_the_best_action(worth: list[float], chosen: int) -> None:
    policy, drawn = Network(SPEC, value=False, seed=0), samples(4)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
    before = probabilities(policy, drawn.states[0], drawn.masks[0])
    for _ in range(200):
        loss, _ = all_actions_step(policy, optimizer, drawn, np.array([worth] * 4, np.float32), 0.2)
    after = probabilities(policy, drawn.states[0], drawn.masks[0])
    assert (after[3:6] == 0).all() and np.isfinite(loss.policy)
    assert after[chosen] > 0.8 > before[chosen]


def test_the_policy_of_an_update_by_hand() -> None:
    """Worths 0.2, 0.1, 0, 0 of root mean square sqrt(0.05 / 4) = 0.1118: exp(1.789), exp(0.894), 1, 1 at weight 1."""
    policy, drawn = Network(SPEC, value=False, seed=0), samples(4)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for _ in range(500):
        loss, off = all_actions_step(
            policy, optimizer, drawn, np.array([[0.2, 0.1, 0, 9, 9, 9, 0]] * 4, np.float32), 1.0
        )
    weights = np.array([math.exp(1.789), math.exp(0.894), 1, 1])
    odds = probabilities(policy, drawn.states[0], drawn.masks[0])[[0, 1, 2, SPEC.void]]
    assert odds == pytest.approx(weights / weights.sum(), abs=1e-3)
    assert off == pytest.approx([0] * 4, abs=1e-4) and loss.policy == pytest.approx(off.mean())
    assert loss.entropy == pytest.approx(-(odds * np.log(odds)).sum())


def test_gains_within_the_error_are_not_blown_up() -> None:
    """1e-4 over SMALLEST, 0.01: a hundredth of a nat apart at weight 1."""
    policy, drawn = Network(SPEC, value=False, seed=0), samples(4)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for _ in range(500):
        all_actions_step(policy, optimizer, drawn, np.array([[1e-4, 0, 0, 9, 9, 9, 0]] * 4, np.float32), 1.0)
    odds = probabilities(policy, drawn.states[0], drawn.masks[0])
    assert odds[0] / odds[1] == pytest.approx(math.exp(0.01), abs=2e-3)
