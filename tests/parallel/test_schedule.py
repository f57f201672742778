"""Schedules against a simulation that runs every micro-batch through every stage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.parallel.mesh import Mesh, Schedule
from graphcost.parallel.schedule import bubble_s, in_flight


def simulated(
    forward: list[float], backward: list[float], micro_batches: int, schedule: Schedule
) -> tuple[float, list[int]]:
    """End of the last pass, and the most micro-batches that each stage holds; a second oracle, event by event."""
    stages = len(forward)
    orders = []
    for stage in range(stages):
        warm = micro_batches if schedule is Schedule.GPIPE else min(micro_batches, stages - stage)
        order = [("f", k) for k in range(warm)]
        for k in range(micro_batches):
            order.append(("b", k))
            if warm + k < micro_batches:
                order.append(("f", warm + k))
        orders.append(order)
    done: dict[tuple[str, int, int], float] = {}
    clock, at, held, most = [0.0] * stages, [0] * stages, [0] * stages, [0] * stages
    while any(at[s] < len(orders[s]) for s in range(stages)):
        for s in range(stages):
            while at[s] < len(orders[s]):
                what, k = orders[s][at[s]]
                first = (what == "f" and s == 0) or (what == "b" and s == stages - 1)
                need = ("f", k, s) if first and what == "b" else (what, k, s - 1 if what == "f" else s + 1)
                if not (what == "f" and s == 0) and need not in done:
                    break
                ready = 0.0 if what == "f" and s == 0 else done[need]
                clock[s] = max(clock[s], ready) + (forward if what == "f" else backward)[s]
                done[what, k, s] = clock[s]
                held[s] += 1 if what == "f" else -1
                most[s] = max(most[s], held[s])
                at[s] += 1
    return max(clock), most


@pytest.mark.parametrize("schedule", [Schedule.GPIPE, Schedule.ONE_F_ONE_B])
@given(
    stages=st.integers(1, 6), micro_batches=st.integers(1, 12), forward=st.integers(1, 5), backward=st.integers(1, 9)
)
def test_equal_stages_wait_as_simulated(
    schedule: Schedule, stages: int, micro_batches: int, forward: int, backward: int
) -> None:
    end, most = simulated([float(forward)] * stages, [float(backward)] * stages, micro_batches, schedule)
    once = [float(forward + backward)] * stages
    assert micro_batches * once[0] + bubble_s(once) == pytest.approx(end)
    mesh = Mesh(pp=stages, dp=1, micro_batches=micro_batches, schedule=schedule)
    assert [in_flight(mesh, stage) for stage in range(stages)] == most


@given(
    passes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=5),
    micro_batches=st.integers(1, 10),
)
def test_unequal_stages_never_wait_longer_than_said(passes: list[tuple[int, int]], micro_batches: int) -> None:
    """GPipe fills and drains twice: with the slowest forward and backward in one stage it is the formula."""
    slowest = max(range(len(passes)), key=lambda at: sum(passes[at]))
    top = (max(f for f, _ in passes), max(b for _, b in passes))
    passes[slowest] = top
    forward, backward = [float(f) for f, _ in passes], [float(b) for _, b in passes]
    end, _ = simulated(forward, backward, micro_batches, Schedule.GPIPE)
    once = [f + b for f, b in zip(forward, backward, strict=True)]
    assert micro_batches * max(once) + bubble_s(once) == pytest.approx(end)


@pytest.mark.parametrize(
    ("chunks", "micro_batches", "share"),
    [(1, 4, 3 / 4), (1, 8, 3 / 8), (2, 8, 3 / 16), (3, 8, 3 / 24)],  # (p - 1) / (v m), p = 4
)
def test_the_bubble_as_a_share_of_the_work(chunks: int, micro_batches: int, share: float) -> None:
    assert bubble_s([2.0] * 4, chunks) / (micro_batches * 2.0) == pytest.approx(share)


@pytest.mark.parametrize(
    ("stage", "kept"),
    [(0, (2 * 3 + 4 + 1) / 2), (3, (0 + 4 + 1) / 2)],  # warm-up 2 (p - 1 - s) + (v - 1) p and one more, in chunks
)
def test_interleaved_stages_keep_their_warm_up(stage: int, kept: float) -> None:
    mesh = Mesh(pp=4, dp=1, micro_batches=8, schedule=Schedule.INTERLEAVED, chunks=2)
    assert in_flight(mesh, stage) == kept
