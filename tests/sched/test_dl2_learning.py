"""DL2's replay, credit and learned progress by hand."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_worlds import SETTINGS, Rates, job, ring, served

from graphcost.sched import SlotView
from graphcost.sched.dl2.encoding import PolicySpec, SlotEncoder
from graphcost.sched.dl2.replay import ALPHA, BETA, Replay, Samples
from graphcost.sim import SimCluster, Simulation

torch = pytest.importorskip("torch")

from graphcost.sched.dl2.actor_critic import ActorCritic  # noqa: E402  # what follows needs torch
from graphcost.sched.dl2.network import Network, probabilities  # noqa: E402
from graphcost.sched.dl2.progress import ProgressModel  # noqa: E402

RATES = Rates({"a": lambda w, p: float(w), "s": lambda w, p: w / (1 + w / p)})
JOBS = (job("r", ring("a"), 500, 2), job("s", served("s"), 900, 3, cap=4), job("t", served("s"), 90, 2, cap=3))
SPEC = PolicySpec(("a", "s"), window=3)


def view_of(nodes: int) -> SlotView:
    return Simulation(list(JOBS), SimCluster.equal(nodes, 4, 3), RATES, SETTINGS).view()


def samples(count: int, first: int = 0, spec: PolicySpec = SPEC) -> Samples:
    states = np.zeros((count, spec.window, spec.columns), np.float32)
    states[:, 0, 0] = np.arange(first, first + count)
    masks = np.ones((count, spec.actions), bool)
    afters = np.ones((count, spec.columns), np.float32)
    returns = np.arange(first, first + count, dtype=np.float32)
    ends = np.arange(count) == count - 1
    return Samples(states, masks, np.zeros(count, np.int64), returns, ends, afters, states)


def test_the_oldest_samples_are_overwritten_and_the_next_state_is_the_next_sample() -> None:
    replay = Replay("plain", 8, SPEC)
    assert not replay.ready
    for first in (0, 3, 6, 9):
        replay.add(samples(3, first))
    assert replay.ready
    _, drawn, weights = replay.draw(2000, np.random.default_rng(0))
    seen = drawn.states[:, 0, 0]
    assert set(seen) == set(range(4, 12)) and (weights == 1).all()
    inside = ~drawn.ends
    assert np.array_equal(drawn.nexts[inside, 0, 0], seen[inside] + 1)
    assert set(seen[drawn.ends]) == {5, 8, 11}


def test_no_replay_holds_the_last_slot_alone() -> None:
    replay = Replay("none", 8, SPEC)
    replay.add(samples(5))
    replay.add(samples(2, 5))
    picked, drawn, _ = replay.draw(100, np.random.default_rng(0))
    assert picked.tolist() == [0, 1] and drawn.returns.tolist() == [5, 6] and replay.ready


def test_priorities_by_hand() -> None:
    """Four samples of advantages 0, 1, 3.99 and 100: 0.01, 1.01, 4, 4, each to the power 0.9."""
    replay = Replay("prioritised", 4, SPEC)
    replay.add(samples(4))
    replay.renew(np.arange(4), np.array([0, 1, -3.99, 100], np.float32))
    weights = np.array([0.01, 1.01, 4, 4]) ** ALPHA
    picked, drawn, importance = replay.draw(40_000, np.random.default_rng(0))
    shares = np.bincount(picked, minlength=4) / len(picked)
    assert shares == pytest.approx(weights / weights.sum(), abs=2e-4)  # strata leave little to chance
    ratio = importance[drawn.returns == 3][0] / importance[drawn.returns == 1][0]
    assert ratio == pytest.approx((weights[3] / weights[1]) ** -BETA, rel=1e-5) and importance.max() == 1


def test_a_restored_replay_draws_the_same() -> None:
    one, other = Replay("prioritised", 8, SPEC), Replay("prioritised", 8, SPEC)
    one.add(samples(6))
    one.draw(4, np.random.default_rng(1))
    other.restore(one.contents())
    drawn = [replay.draw(16, np.random.default_rng(2)) for replay in (one, other)]
    assert np.array_equal(drawn[0][0], drawn[1][0]) and np.array_equal(drawn[0][2], drawn[1][2])
    with pytest.raises(ValueError, match="a replay of"):
        Replay("plain", 9, SPEC).restore(one.contents())


def learner(credit: str = "slot", critic: bool = True, entropy: float = 0.0) -> ActorCritic:
    policy, value = Network(SPEC, value=False, seed=0), Network(SPEC, value=True, seed=1)
    optimizers = [torch.optim.SGD(network.parameters(), lr=0.02) for network in (policy, value)]
    return ActorCritic(policy, value, *optimizers, entropy, credit, critic)


def slot_samples(returns: list[float]) -> Samples:
    """Row 0's three actions in one state of JOBS, then void."""
    slot = SlotEncoder(view_of(nodes=8), SPEC)
    count = len(returns)
    states = np.stack([slot.state] * count)
    return Samples(
        states, np.stack([slot.mask] * count), np.array([3, 4, 5, SPEC.void][:count]),
        np.array(returns, np.float32), np.arange(count) == count - 1,
        np.ones((count, SPEC.columns), np.float32), states,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("credit", "critic", "expected"),
    [
        ("slot", True, lambda v: [5 - v, 1 - v, 1 - v, 1 - v]),  # R - V
        ("step", True, lambda v: [0.5 + v - v, 0 + v - v, -0.5 + v - v, 0 - v]),  # r + V' - V; the slot's end: 0
        ("slot", False, lambda v: [5, 1, 1, 1]),  # no baseline
    ],
)
def test_advantages_by_hand(credit: str, critic: bool, expected) -> None:  # type: ignore[no-untyped-def]
    made = learner(credit, critic)
    drawn = slot_samples([5, 1, 1, 1])
    value = made.value_of(drawn.states[0])
    rewards = np.array([0.5, 0, -0.5, 0], np.float32)
    _, advantages = made.update(drawn, rewards, np.ones(4, np.float32), actor=False)
    assert advantages == pytest.approx(expected(value), abs=1e-6)


def test_an_update_makes_what_went_well_likelier() -> None:
    made, drawn = learner(), slot_samples([5, 1, 1, 1])
    before = probabilities(made.policy, drawn.states[0], drawn.masks[0])
    for _ in range(100):
        loss, _ = made.update(drawn, np.zeros(4, np.float32), np.ones(4, np.float32))
    after = probabilities(made.policy, drawn.states[0], drawn.masks[0])
    assert after[3] > before[3] + 0.05 and (after[[4, 5, SPEC.void]] < before[[4, 5, SPEC.void]]).all()
    assert np.isfinite([loss.policy, loss.value, loss.entropy]).all()


def test_entropy_alone_evens_the_policy_out() -> None:
    """Returns of zero and no baseline: no advantage, whatever is done."""
    made, drawn = learner(critic=False, entropy=1.0), slot_samples([0, 0, 0, 0])
    first, _ = made.update(drawn, np.zeros(4, np.float32), np.ones(4, np.float32))
    for _ in range(100):
        last, _ = made.update(drawn, np.zeros(4, np.float32), np.ones(4, np.float32))
    assert last.entropy > first.entropy


def test_a_given_up_action_is_not_pushed_down_without_end() -> None:
    """A thousand updates that all blame the same action leave its logit finite and small."""
    made, drawn = learner(), slot_samples([5, 1, 1, 1])
    for _ in range(1000):
        loss, _ = made.update(drawn, np.zeros(4, np.float32), np.ones(4, np.float32))
    assert abs(loss.policy) < 10


def test_progress_is_learned_and_credited_to_single_actions() -> None:
    """Jobs of model a do 0.1 a worker, those of s nothing."""
    model, draw = ProgressModel(SPEC, 3e-3, 0), np.random.default_rng(0)
    rows = np.zeros((400, SPEC.columns), np.float32)
    rows[np.arange(400), draw.integers(2, size=400)] = 1
    rows[:, -2] = draw.integers(1, 9, size=400)
    model.add(rows, (0.1 * rows[:, -2] * rows[:, 0]).astype(np.float32))
    errors = [model.learn(64, draw) for _ in range(1500)]
    assert errors[-1] < 2e-3 < errors[0]
    states = np.zeros((3, SPEC.window, SPEC.columns), np.float32)
    states[:, 0, 0] = states[:, 1, 1] = 1
    states[:, :2, -2] = 3
    afters = np.stack((states[0, 0], states[0, 1], np.zeros(SPEC.columns, np.float32)))
    afters[:2, -2] = 4
    gains = model.gains(states, np.array([0, 3, SPEC.void]), afters)
    assert gains == pytest.approx([0.1, 0.0, 0.0], abs=0.04) and gains[2] == 0
    other = ProgressModel(SPEC, 3e-3, 9)
    other.restore(model.contents())
    assert np.array_equal(other(rows), model(rows))
