"""Compact placement and its scheduler: schedules worked by hand, and what holds on any cluster of equal nodes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_worlds import SETTINGS, Rates, job, ring, served

from graphcost.sched import SCHEDULERS, Knowledge, Tasks
from graphcost.sched.compact_nodes import CompactAllocation, fewest_nodes
from graphcost.sched.dl2.encoding import PolicySpec, SlotEncoder
from graphcost.sim import SimCluster, Simulation, TrainedModel, simulate


class Placed(Rates):
    """A job on several nodes runs at a tenth of its speed."""

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        return super().samples_per_s(model, tasks) / (1 if len(tasks) == 1 else 10)


LINEAR = Placed({name: lambda w, p: float(w) for name in "abc"})
TWO_NODES = SimCluster.equal(2, cpus=4, gpus=4)
ABC = (job("C", ring("c"), 900, 4), job("B", ring("b"), 600, 4), job("A", ring("a"), 400, 4))


def test_jobs_stay_inside_their_nodes_and_the_shortest_goes_first() -> None:
    """Time left at best: A 100, B 150, C 225 s, so A takes a node whole; B and C share the other, B 3 and C 1.

    From 100 s on B has 600 - 300 left and a node, C 900 - 100 and the other.
    """
    found = simulate(ABC, TWO_NODES, SCHEDULERS["compact"], LINEAR, SETTINGS)
    finishes = {one.job_id: one.finish_s for one in found.jobs}
    assert finishes == pytest.approx({"A": 100, "B": 100 + 300 / 4, "C": 100 + 800 / 4})
    first = {run.job_id: (run.workers, run.nodes) for run in found.runs if run.start_s == 0}
    assert {job_id: workers for job_id, (workers, _) in first.items()} == {"A": 4, "B": 3, "C": 1}
    assert first["B"][1] == first["C"][1] != first["A"][1]


def test_time_saved_is_that_of_the_slot() -> None:
    """A (1, 1.9, 2 epochs/s) has 300 s left at best, B 100 s; slots of 100 s, four GPUs, one each to begin with.

    B's second and third save (3 - 1) / 3 of the slot each way of counting: 33 s a GPU of its 100. A's second saves
    45 s of its 300 and is left to the next slot: B 3, A 1, then A alone on 3. Optimus compares 284 s with 150 s.
    """
    rates = Rates({"a": lambda w, p: (0, 1.0, 1.9, 2.0)[w], "b": lambda w, p: w})
    jobs = (job("A", ring("a"), 600, 3), job("B", ring("b"), 300, 3))
    found = simulate(jobs, SimCluster.equal(1, cpus=8, gpus=4), SCHEDULERS["compact"], rates, SETTINGS)
    assert {one.job_id: one.finish_s for one in found.jobs} == pytest.approx(
        {"B": 300 / 3, "A": 100 + (600 - 100) / 2.0}
    )


@pytest.mark.parametrize(("name", "finish_s"), [("compact", 800 / 4), ("optimus-exact", 800 / 1)])
def test_a_bump_is_passed(name: str, finish_s: float) -> None:
    """Two or three workers bring nothing, four do: single steps never get there."""
    rates = Rates({"a": lambda w, p: 4.0 if w == 4 else float(w > 0)})
    found = simulate((job("A", ring("a"), 800, 4),), TWO_NODES, SCHEDULERS[name], rates, SETTINGS)
    assert found.jobs[0].finish_s == pytest.approx(finish_s)


def test_the_placement_alone_under_optimus() -> None:
    """Two nodes of three GPUs, three jobs of up to two: the sixth GPU would cut a job, and stays free."""
    three = SimCluster.equal(2, cpus=3, gpus=3)
    jobs = (
        job("A", ring("a"), 600, 2, cap=2),
        job("B", ring("b"), 600, 2, cap=2),
        job("C", ring("c"), 600, 2, cap=2),
    )
    held = {}
    for name in ("optimus", "optimus-compact"):
        run = Simulation(jobs, three, LINEAR, SETTINGS, knows=Knowledge.SAMPLES)
        decision = SCHEDULERS[name].decide(run.view(), 0)
        held[name] = sorted((grant.workers, len(grant.tasks)) for grant in decision.grants)
    assert held == {"optimus": [(2, 1), (2, 1), (2, 2)], "optimus-compact": [(1, 1), (2, 1), (2, 1)]}


MODELS = (ring("a"), ring("b", cpus=2), ring("c", gpus=0), served("s", ps_cpus=2))
WORLD = Rates({model.name: lambda w, p: float(w) for model in MODELS})


@st.composite
def slots(draw: st.DrawFn) -> Simulation:
    count = draw(st.integers(1, 6))
    jobs = [
        job(f"j{index}", draw(st.sampled_from(MODELS)), 1e6, 2, cap=draw(st.integers(2, 9))) for index in range(count)
    ]
    gpus = draw(st.sampled_from([2, 4]))
    return Simulation(jobs, SimCluster.equal(draw(st.integers(1, 4)), draw(st.sampled_from([4, 8])), gpus), WORLD)


@settings(max_examples=60)
@given(run=slots(), steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)), max_size=40))
def test_laws_of_a_compact_allocation(run: Simulation, steps: list[tuple[int, int, int]]) -> None:
    view = run.view()
    allocation = CompactAllocation(view)
    for at, workers, ps in steps:
        one = view.jobs[at % len(view.jobs)]
        allowed = workers + ps > 0 and allocation.within_caps(one, workers, ps)
        expected = allowed and allocation.stays_compact(one, workers, ps)
        before = allocation.decision()
        assert allocation.add(one, workers, ps) == expected
        decision = allocation.decision()
        assert expected or decision == before  # a misfit changes nothing
        for grant in decision.grants:
            asked = next(each for each in view.jobs if each.job_id == grant.job_id)
            assert len(grant.tasks) <= len(fewest_nodes(asked, grant.workers, grant.ps, view.nodes[0]))
            given_ = [(s.workers, s.ps) for s in decision.increments if s.job_id == grant.job_id]
            assert (grant.workers, grant.ps) == tuple(map(sum, zip(*given_, strict=True)))
    run.run_slot(allocation.decision().grants)  # refuses what is over capacity


def test_nodes_are_not_chosen_from_outside() -> None:
    view = Simulation(ABC, TWO_NODES, LINEAR, SETTINGS).view()
    with pytest.raises(ValueError, match="node 1: a compact allocation chooses its nodes itself"):
        CompactAllocation(view).add(view.jobs[0], 1, node=1)


@settings(max_examples=40)
@given(run=slots(), picks=st.lists(st.integers(0, 10**6), max_size=40))
def test_a_policy_that_is_compact_never_leaves_its_nodes(run: Simulation, picks: list[int]) -> None:
    """Whatever actions are taken: the mask holds what finds no room, and one that it allows is given."""
    spec = PolicySpec(tuple(sorted(model.name for model in MODELS)), window=6, placement="compact")
    slot = SlotEncoder(run.view(), spec)
    for pick in picks:
        allowed = slot.mask[:-1].nonzero()[0]
        if not len(allowed):
            break
        before = len(slot.allocation.decision().increments)
        assert slot.take(int(allowed[pick % len(allowed)]))
        assert len(slot.allocation.decision().increments) == before + 1
    jobs = {one.job_id: one for one in slot.allocation.view.jobs}
    for grant in slot.decision().grants:
        fewest = fewest_nodes(jobs[grant.job_id], grant.workers, grant.ps, slot.allocation.view.nodes[0])
        assert len(grant.tasks) <= len(fewest)
