"""A schedule per policy, worked by hand, that tells it from FIFO. One node of 8 CPUs and 4 GPUs, slots of 100 s.

Jobs of the first world train at one epoch per second and worker and arrive together:
A 600 epochs, asks for 3 workers; B 500 epochs, 3 workers; C 100 epochs, 1 worker without a GPU.
"""

from __future__ import annotations

import numpy as np
import pytest
from schedule_worlds import SETTINGS, Rates, job, ring, served

from graphcost.sched import SCHEDULERS
from graphcost.sched.tetris import scores
from graphcost.sim import SimCluster, per_job_optimum, simulate

NODE = SimCluster.equal(1, cpus=8, gpus=4)
LINEAR = Rates({"a": lambda w, p: w, "b": lambda w, p: w, "c": lambda w, p: w})
ABC = (job("A", ring("a"), 600, 3), job("B", ring("b"), 500, 3), job("C", ring("c", gpus=0), 100, 1))

FINISHES = {
    # A has 3 GPUs, B the last one; B did not fit whole, so C waits though CPUs are free.
    # A: 600/3. B: 2 slots * 100 * 1 worker, then (500 - 200)/3. C: starts when B fits, at 200.
    "fifo": {"A": 600 / 3, "B": 200 + (500 - 200) / 3, "C": 200 + 100 / 1},
    # Time left at the request: C 100, B 500/3, A 200. C and B whole, A the last GPU.
    # B: 100 + (500 - 300)/3. A: 2 slots with 1 worker, 1 with 3, then (600 - 200 - 300)/3.
    "srtf": {"C": 100 / 1, "B": 100 + (500 - 300) / 3, "A": 300 + (600 - 200 - 300) / 3},
    # Shares: A and B 1/4 a worker (GPUs), C 1/8 (CPUs): A 2, B 2, C 1.
    # B: 400 in two slots, 250. A: 600/2 = 300, two workers to the end: allocations stay within a slot.
    "drf": {"C": 100 / 1, "B": 200 + (500 - 400) / 2, "A": 600 / 2},
    # First pick, free (1, 1) of the node: alignment A, B 1/8 + 1/4 = .375, C 1/8; mean .2917; left 200, 166.7, 100,
    # mean 155.6; epsilon .001875: A 0, B .0625, C -.0625. B three times, then A .1406 - .1458, C .0781 - .0729: C.
    # The last GPU is A's: as srtf here. The wrong sign would feed A first.
    "tetris": {"C": 100 / 1, "B": 100 + (500 - 300) / 3, "A": 300 + (600 - 200 - 300) / 3},
}


@pytest.mark.parametrize("name", FINISHES)
def test_schedule(name: str) -> None:
    found = simulate(ABC, NODE, SCHEDULERS[name], LINEAR, SETTINGS)
    assert {one.job_id: one.finish_s for one in found.jobs} == pytest.approx(FINISHES[name])
    assert name == "fifo" or FINISHES[name] != FINISHES["fifo"]


# The second world: A's speed flattens (1, 1.9, 2 epochs/s on 1, 2, 3 workers), B's does not.
FLAT = Rates({"a": lambda w, p: (0, 1.0, 1.9, 2.0)[w], "b": lambda w, p: w})
AB = (job("A", ring("a"), 600, 3), job("B", ring("b"), 300, 3))

ELASTIC = {
    # A 3, B 1.
    "fifo": {"A": 600 / 2.0, "B": 300 / 1},
    # From 1 and 1: A 600/1 - 600/1.9 = 284 s, then B 300 - 150 = 150 s (A's third: 16 s). A 2, B 2.
    # Slot 1: A has 410 left, B 100: A 194 s, B 50 s (A's third 11 s): the same. B: 100 + 100/2.
    # Slot 2: A alone on 3: 220 - 200 = 20 left; 300 + 20/2.
    "optimus-exact": {"A": 300 + (600 - 380 - 200) / 2.0, "B": 100 + (300 - 200) / 2},
    "optimus": {"A": 300 + (600 - 380 - 200) / 2.0, "B": 100 + (300 - 200) / 2},  # without noise it knows as much
    "optimus-compact": {"A": 300 + (600 - 380 - 200) / 2.0, "B": 100 + (300 - 200) / 2},  # one node: place is nothing
    # Fair share: 4 GPUs / 2 jobs = 2. Gains B 2 (1 - 1/2) = 1, A 1.9 (1 - 1/1.9) = .9: A 2, B 2; the third of
    # B 2 (1/2 - 1/3) = .33 does not fit. B: 300/2 = 150. Slot 2: A on 3 as above.
    "pollux": {"A": 300 + (600 - 380 - 200) / 2.0, "B": 100 + (300 - 200) / 2},
}


@pytest.mark.parametrize("name", ELASTIC)
def test_elastic_schedule(name: str) -> None:
    found = simulate(AB, NODE, SCHEDULERS[name], FLAT, SETTINGS)
    assert {one.job_id: one.finish_s for one in found.jobs} == pytest.approx(ELASTIC[name])


def test_pollux_heeds_no_remaining_work_and_optimus_does() -> None:
    """B nearly done: Optimus gives A the GPUs (A 2 -> 3 saves 15.8 s, B 2 -> 3 of 6 epochs 1 s), Pollux B."""
    short = (job("A", ring("a"), 600, 3), job("B", ring("b"), 6, 3))
    five = SimCluster.equal(1, cpus=8, gpus=5)
    events = {
        name: {
            (e.job_id): e.workers
            for e in simulate(short, five, SCHEDULERS[name], FLAT, SETTINGS).events
            if e.kind == "start"
        }
        for name in ("optimus-exact", "pollux")
    }
    assert events == {"optimus-exact": {"A": 3, "B": 2}, "pollux": {"A": 2, "B": 3}}


def test_servers_are_sized_apart_from_workers() -> None:
    """Servers help, more workers do not: from (1, 1) the gain is the servers' until the cap."""
    rates = Rates({"s": lambda w, p: p / (1 + 0.5 * (w - 1))})
    found = simulate((job("S", served("s"), 300, 3),), NODE, SCHEDULERS["optimus-exact"], rates, SETTINGS)
    assert [(run.workers, run.ps) for run in found.runs] == [(1, 3)]
    assert found.jobs[0].finish_s == pytest.approx(300 / 3)


def test_the_bound_is_each_job_alone() -> None:
    outcomes, metrics = per_job_optimum(AB, NODE, FLAT, SETTINGS)
    assert [one.finish_s for one in outcomes] == pytest.approx([600 / 2.0, 300 / 3])
    assert metrics.mean_jct_s == pytest.approx((300 + 100) / 2)


def test_tetris_prefers_short_jobs() -> None:
    assert scores(np.array([1.0, 1.0]), np.array([10.0, 30.0])) == pytest.approx([1 - 10 / 20, 1 - 30 / 20])
