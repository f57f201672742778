"""Laws of every registered scheduler, on generated clusters and jobs."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_worlds import SLOT_S, Rates, job, ring, served

from graphcost.sched import SCHEDULERS, Grant, Knowledge, Resources, Tasks
from graphcost.sim import Disturbance, Job, Settings, SimCluster, Simulation, per_job_optimum, scalings, simulate
from graphcost.sim.checks import check_grants

RATES = Rates(
    {
        "linear": lambda w, p: float(w),
        "flat": lambda w, p: w / (1 + 0.3 * w),
        "peaked": lambda w, p: w / (1 + 0.05 * w * w),
        "served": lambda w, p: w / (1 + 0.6 * w / p + 0.02 * p),
    }
)
MODELS = (ring("linear"), ring("flat", cpus=0.5, gpus=0.5), ring("peaked", gpus=0), served("served", ps_cpus=1.5))


@st.composite
def traces(draw: st.DrawFn) -> tuple[Job, ...]:
    count = draw(st.integers(1, 7))
    return tuple(
        job(
            f"j{index}",
            draw(st.sampled_from(MODELS)),
            draw(st.floats(1, 2000)),
            request=draw(st.integers(1, 4)),
            arrival_s=draw(st.floats(0, 500)),
            cap=draw(st.integers(4, 6)),
        )
        for index in range(count)
    )


clusters = st.lists(
    st.builds(Resources.of, st.sampled_from([3, 4, 8]), st.sampled_from([1, 2, 4])), min_size=1, max_size=4
).map(lambda nodes: SimCluster(tuple(nodes)))
disturbed = st.builds(
    lambda seed, share, scaling: Settings(
        SLOT_S, scalings().find(scaling), Disturbance(seed, share, share, share, share), max_slots=5000
    ),
    st.integers(0, 99),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from(["none", "hot", "checkpoint"]),
)


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=25)
@given(jobs=traces(), cluster=clusters, world=disturbed)
def test_laws(name: str, jobs: tuple[Job, ...], cluster: SimCluster, world: Settings) -> None:
    scheduler = SCHEDULERS[name]
    run = Simulation(jobs, cluster, RATES, world, knows=scheduler.knows)
    done = dict.fromkeys((one.job_id for one in jobs), 0.0)
    while not run.done:
        view = run.view()
        before = deepcopy((view.slot, view.nodes, view.observations, [repr(one) for one in view.jobs]))
        decision = scheduler.decide(view, 0)
        assert scheduler.decide(view, 0) == decision  # deterministic, and the first call changed nothing
        assert (view.slot, view.nodes, view.observations, [repr(one) for one in view.jobs]) == before
        assert decision.grants  # jobs are waiting on an empty cluster: someone gets something
        given_ = [(one.job_id, one.workers, one.ps) for one in decision.increments]
        for grant in decision.grants:
            added = [(w, p) for job_id, w, p in given_ if job_id == grant.job_id]
            assert (grant.workers, grant.ps) == (sum(w for w, _ in added), sum(p for _, p in added))
        for job_id, epochs in run.run_slot(decision.grants).epochs.items():  # refuses what is over capacity
            done[job_id] += epochs
    found = run.result(name)
    assert found.metrics.unfinished == 0
    assert sorted(one.job_id for one in found.jobs) == sorted(done)
    bound, _ = per_job_optimum(jobs, cluster, RATES, world)
    best = {one.job_id: one.finish_s for one in bound}
    for outcome in found.jobs:
        assert done[outcome.job_id] == pytest.approx(outcome.epochs)  # work is conserved
        assert outcome.epochs_done == outcome.epochs
        assert outcome.finish_s is not None and (finish := best[outcome.job_id]) is not None
        assert outcome.finish_s >= finish * (1 - 1e-9)
    for use in found.slots:
        assert use.gpu_share <= 1 + 1e-9 and use.cpu_share <= 1 + 1e-9 and use.running <= use.jobs
    for first, second in zip(found.runs, found.runs[1:], strict=False):
        assert first.start_s <= second.start_s
    assert simulate(jobs, cluster, scheduler, RATES, world) == found


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_view_holds_no_more_than_is_declared(name: str) -> None:
    knows = SCHEDULERS[name].knows
    run = Simulation((job("j", ring("linear"), 10, 1),), SimCluster.equal(1, 4, 4), RATES, knows=knows)
    view = run.view()
    assert (view.jobs[0].speed is not None) == (knows is Knowledge.EXACT)
    assert bool(view.observations) == (knows is Knowledge.SAMPLES)


def test_every_scheduler_says_what_it_is() -> None:
    known = {"fifo", "srtf", "drf", "tetris", "optimus", "optimus-exact", "optimus-compact", "pollux", "compact"}
    assert set(SCHEDULERS) >= known
    for scheduler in SCHEDULERS.values():
        assert scheduler.summary and scheduler.source


@pytest.mark.parametrize(
    ("grants", "message"),
    [
        ((Grant("j", (Tasks(0, 3, 0),)),), "node 0: 3 CPUs and 3 GPUs granted, it has 2 CPUs and 2 GPUs"),
        ((Grant("j", (Tasks(0, 2, 0), Tasks(1, 2, 0))),), "over its caps of 3"),
        ((Grant("k", (Tasks(0, 1, 0),)),), "no unfinished job"),
        ((Grant("j", (Tasks(0, 1, 0),)), Grant("j", (Tasks(1, 1, 0),))), "which has one"),
        ((Grant("j", (Tasks(2, 1, 0),)),), "no group of tasks"),
        ((Grant("j", (Tasks(0, 1, 1),)),), "over its caps"),
    ],
)
def test_impossible_grants_are_refused(grants: tuple[Grant, ...], message: str) -> None:
    only = {"j": job("j", ring("linear"), 10, 3)}
    with pytest.raises(ValueError, match=message):
        check_grants(grants, only, SimCluster.equal(2, 2, 2))
