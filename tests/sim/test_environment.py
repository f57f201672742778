"""The gymnasium environment: its own checker, and DL2's episode by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from schedule_worlds import SETTINGS, Rates, job, ring, served

from graphcost.sim import SimCluster

pytest.importorskip("gymnasium")

RATES = Rates({"a": lambda w, p: float(w), "s": lambda w, p: min(w, p)})


def environment(**options: object):  # type: ignore[no-untyped-def]
    from graphcost.sim.environment import ScheduleEnv

    def draw(seed: int):  # type: ignore[no-untyped-def]
        return (job("r", ring("a"), 150 + seed, 2), job("s", served("s"), 200, 3, arrival_s=50))

    settings = {"models": ("a", "s"), "seeds": range(3), "settings": lambda seed: SETTINGS, "window": 2, **options}
    return ScheduleEnv(draw, SimCluster.equal(2, 4, 3), RATES, **settings)


def test_gymnasiums_checker() -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        # It advises a render mode, a bounded box and a registered spec; observations here have no upper bound.
        warnings.simplefilter("ignore")
        check_env(environment(), skip_render_check=True)


def test_an_episode() -> None:
    """Slot 0: r holds its bundle; +1 worker, its cap; it leaves the window. Void: 150 epochs at 2/s end in 75 s."""
    env = environment()
    state, info = env.reset(seed=0, options={"trace": 0})
    assert state.shape == (2, 2 + 5)
    assert state[0].tolist() == pytest.approx(
        [1, 0, 0, 1, 1 / 6, 1, 0]
    )  # a; waited 0, all left, 1 of 6 GPUs, 1 worker
    assert info["action_mask"].tolist() == [1, 0, 0, 0, 0, 0, 1]  # no servers for AllReduce; position 2 is empty
    state, reward, terminated, truncated, info = env.step(np.int64(0))
    assert (reward, terminated, truncated) == (0.0, False, False) and not state.any()
    assert info["action_mask"].tolist() == [0, 0, 0, 0, 0, 0, 1]
    state, reward, terminated, truncated, info = env.step(np.int64(6))
    assert reward == pytest.approx(1.0) and info["slot_ended"].finished == ("r",) and info["slot"] == 1
    # s arrived at 50 s: seen in slot 1, half a slot old, with its bundle.
    assert state[0].tolist() == pytest.approx([0, 1, 0.5, 1, 2 / 8, 1, 1])
    state, reward, terminated, truncated, info = env.step(np.int64(2))  # one of both: 2 workers, 2 servers
    assert state[0, -2:].tolist() == [2, 2] and not terminated
    _, reward, terminated, truncated, _ = env.step(np.int64(6))
    assert (reward, terminated, truncated) == (pytest.approx(1.0), True, False)  # 200 epochs at 2/s


def test_rewards_of_an_episode_are_the_jobs() -> None:
    """Each job's shares add up to one, whatever a random policy does."""
    env = environment(starting_bundle=True)
    _, info = env.reset(seed=5)
    draw, total, ended = np.random.default_rng(0), 0.0, False
    while not ended:
        action = draw.choice(np.flatnonzero(info["action_mask"]))
        _, reward, terminated, truncated, info = env.step(action)
        total, ended = total + reward, terminated or truncated
    assert total == pytest.approx(2.0) and env.action_masks().dtype == bool
