"""The simulator's own arithmetic: slots, fractional ends, scaling, disturbances, placement, seeds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from schedule_worlds import QUIET, SETTINGS, SLOT_S, Rates, job, ring, served

from graphcost.errors import PlacementError, UsageError
from graphcost.sched import SCHEDULERS, Grant, Resources, Tasks
from graphcost.sched.compact_nodes import fewest_nodes
from graphcost.sim import Disturbance, Settings, SimCluster, Simulation, per_job_optimum, scalings, simulate
from graphcost.sim.speeds import AnalyticalSpeeds, FitSpeeds
from graphcost.sim.workloads import SEEDS, Split, generate, load_workload, offered_load, seeds_of, split_of, stretched
from graphcost.sim.workloads.load import Load

LINEAR = Rates({"a": lambda w, p: float(w), "b": lambda w, p: float(w)})
FOUR = SimCluster.equal(4, cpus=4, gpus=1)


def test_a_job_waits_for_a_slot_and_ends_inside_one() -> None:
    """Arrival at 30 s: seen at 100; 2 workers do 200 a slot; 250 end at 100 + 100 + 50/2."""
    found = simulate((job("j", ring("a"), 250, 2, arrival_s=30),), FOUR, SCHEDULERS["fifo"], LINEAR, SETTINGS)
    only = found.jobs[0]
    assert (only.start_s, only.finish_s, only.jct_s) == (100, 225, 195)
    # 2 GPUs for 125 s, of 4 GPUs over the 195 s from arrival to end
    assert found.metrics.utilisation == pytest.approx(2 * 125 / (4 * 195))
    assert found.metrics.mean_jct_whole_slots == 2 and found.metrics.mean_jct_slots == pytest.approx(1.95)


def test_a_job_is_never_seen_before_it_arrives() -> None:
    """Found by the laws: an arrival a hair after the slot's start waits for the next one, in the bound too."""
    late = (job("early", ring("a"), 1, 1), job("late", ring("a"), 1, 1, arrival_s=1e-7))
    found = simulate(late, FOUR, SCHEDULERS["fifo"], LINEAR, SETTINGS)
    assert found.jobs[1].finish_s == per_job_optimum(late, FOUR, LINEAR, SETTINGS)[0][1].finish_s == 101


def test_idle_slots_are_skipped() -> None:
    jobs = (job("early", ring("a"), 10, 1), job("late", ring("a"), 10, 1, arrival_s=1e6))
    found = simulate(jobs, FOUR, SCHEDULERS["fifo"], LINEAR, SETTINGS)
    assert [use.slot for use in found.slots] == [0, 10_000] and found.jobs[1].finish_s == 1e6 + 10


@pytest.mark.parametrize(
    ("name", "before", "after", "seconds"),
    [
        ("hot", (2, 1), (2, 2), 0.062), ("hot", (2, 1), (2, 4), 0.188), ("hot", (2, 1), (2, 9), 0.625 + 2 * 0.104),
        ("hot", (2, 1), (4, 1), 0.0), ("hot", (0, 0), (1, 1), 11.45), ("hot", (2, 2), (2, 2), 0.0),
        ("checkpoint", (2, 1), (2, 7), 16.05), ("checkpoint", (2, 2), (1, 1), 11.45),
        ("slow-checkpoint", (2, 1), (2, 2), 360.0), ("none", (2, 1), (2, 9), 0.0),
        ("checkpoint", (1, 0), (4, 0), 14.55), ("checkpoint", (4, 0), (0, 0), 0.0),
    ],
)  # fmt: skip
def test_scaling_costs(name: str, before: tuple[int, int], after: tuple[int, int], seconds: float) -> None:
    cost = scalings().find(name)
    assert cost.cost_s(before, after, started=True) == pytest.approx(seconds)
    assert cost.cost_s(before, after, started=False) == 0


def test_scaling_is_charged_once_and_takes_time_off_the_slot() -> None:
    """1 worker, then 3: AllReduce adds 2 at 13.95 s. 400 epochs: 100 + 3 (100 - 13.95), then 41.85 / 3."""
    world = Settings(SLOT_S, scalings().find("checkpoint"), QUIET)
    run = Simulation((job("j", ring("a"), 400, 3),), FOUR, LINEAR, world)
    done = [run.run_slot((Grant("j", (Tasks(0, 1, 0),)),)).epochs["j"]]
    three = (Grant("j", tuple(Tasks(node, 1, 0) for node in range(3))),)
    while not run.done:
        done.append(run.run_slot(three).epochs["j"])
    assert done == pytest.approx([100, 3 * (100 - 13.95), 400 - 100 - 3 * (100 - 13.95)])
    found = run.result("by hand")
    assert found.jobs[0].finish_s == pytest.approx(200 + (400 - 100 - 3 * 86.05) / 3)
    assert (found.metrics.rescales, found.metrics.scaling_s) == (1, 13.95)
    assert [event.kind for event in found.events] == ["arrive", "start", "scale", "finish"]


def test_pause_and_resume() -> None:
    world = Settings(SLOT_S, scalings().find("hot"), QUIET)
    run = Simulation((job("j", ring("a"), 150, 1),), FOUR, LINEAR, world)
    one = (Grant("j", (Tasks(0, 1, 0),)),)
    for grants in (one, (), one):
        run.run_slot(grants)
    found = run.result("by hand")
    assert [event.kind for event in found.events] == ["arrive", "start", "pause", "resume", "finish"]
    assert found.jobs[0].finish_s == pytest.approx(200 + 11.45 + 50)


def test_unfinished_jobs_are_kept_and_counted() -> None:
    world = replace(SETTINGS, max_slots=2)
    jobs = (job("long", ring("a"), 1e6, 1), job("short", ring("a"), 10, 1), job("never", ring("a"), 1, 1, 1e9))
    found = simulate(jobs, FOUR, SCHEDULERS["fifo"], LINEAR, world)
    assert (found.metrics.finished, found.metrics.unfinished) == (1, 2) and found.metrics.makespan_s is None
    assert {one.job_id: one.finish_s for one in found.jobs} == {"long": None, "short": 10, "never": None}


def test_interference_and_variation() -> None:
    """Two jobs share the node: both lose 0.4. Alone, neither does. Variation is the same under any scheduler."""
    shared = replace(SETTINGS, disturbance=Disturbance(interference=0.4, measurement_noise=0))
    jobs = (job("x", ring("a"), 60, 1), job("y", ring("a"), 60, 1))
    together = simulate(jobs, SimCluster.equal(1, 4, 2), SCHEDULERS["fifo"], LINEAR, shared)
    apart = simulate(jobs, FOUR, SCHEDULERS["fifo"], LINEAR, shared)
    assert [one.finish_s for one in together.jobs] == pytest.approx([60 / 0.6, 60 / 0.6])
    assert [one.finish_s for one in apart.jobs] == [60, 60]
    varied = replace(SETTINGS, disturbance=Disturbance(seed=1, speed_variation=0.2))
    first, second = (simulate(jobs, FOUR, SCHEDULERS[name], LINEAR, varied) for name in ("fifo", "drf"))
    assert first.jobs == second.jobs and all(60 / 1.2 <= (one.finish_s or 0) <= 60 / 0.8 for one in first.jobs)
    assert first.jobs[0].finish_s != 60


def test_estimates_reach_the_view_and_not_the_job() -> None:
    wrong = replace(SETTINGS, disturbance=Disturbance(seed=2, epoch_error=0.25))
    run = Simulation((job("j", ring("a"), 100, 1),), FOUR, LINEAR, wrong)
    seen = run.view().jobs[0]
    assert seen.epochs != 100 and abs(seen.epochs / 100 - 1) <= 0.25
    run.run_slot((Grant("j", (Tasks(0, 1, 0),)),))
    assert run.done and run.result("x").jobs[0].finish_s == 100


def test_statistical_efficiency() -> None:
    """Noise scale 10, batch 2 a worker: (10 + 2) / (10 + 2*4) of the samples on 4 workers count."""
    model = replace(ring("a"), batch=2.0, batch_grows=True, noise_scale=10.0)
    found = simulate((job("j", model, 100, 4),), FOUR, SCHEDULERS["fifo"], LINEAR, SETTINGS)
    assert found.jobs[0].finish_s == pytest.approx(100 / (4 * 12 / 18))


def test_refusals() -> None:
    big = job("big", ring("a", gpus=2), 10, 1)
    with pytest.raises(PlacementError, match=r"job big can never run: a worker needs 1 CPUs and 2 GPUs.*and 1 more"):
        Simulation((big, replace(big, job_id="b2")), FOUR, LINEAR)
    for jobs, message in (
        ((), "no jobs"),
        ((job("j", ring("a"), 1, 1), job("j", ring("a"), 1, 1)), "two of this id"),
        ((job("j", ring("a"), 0, 1),), "epochs over 0"),
        ((job("j", ring("z"), 1, 1),), "no model named 'z'"),
    ):
        with pytest.raises(UsageError, match=message):
            Simulation(jobs, FOUR, LINEAR)
    with pytest.raises(UsageError, match="0 nodes"):
        SimCluster(())


def test_tasks_are_laid_on_the_fewest_nodes() -> None:
    """A node of 4 CPUs and 2 GPUs takes two pairs of worker and server."""
    model = served("a")
    assert fewest_nodes(model, 3, 2, Resources.of(4, 2)) == (Tasks(0, 2, 2), Tasks(1, 1, 0))


def test_fitted_speeds_are_the_formula() -> None:
    """ResNet-50, 4 workers, 2 servers: 32 / (.41777 + .12608/4 + .42131*4/2 + .00737*4) samples/s."""
    speeds = FitSpeeds("release")
    model = load_workload("dl2-release").models[0]
    by_hand = 32 / (0.41777 + 0.12608 / 4 + 0.42131 * 4 / 2 + 0.00737 * 4)
    assert speeds.samples_per_s(model, (Tasks(0, 4, 1), Tasks(1, 0, 1))) == pytest.approx(by_hand)
    grown = FitSpeeds("development").samples_per_s(model, (Tasks(0, 4, 2),))
    assert grown == pytest.approx(4 * 32 / (1.00306 + 0.21582 * 4 / 2 + 0.00003 * 2))


def test_analytical_speeds_depend_on_placement() -> None:
    """Two pairs, 51.1 MB a server. On one node: 91.875 MB/s. Servers elsewhere: two share it, so half.

    As in the source, a worker beside every server still sees the rate between nodes.
    """
    model = load_workload("dl2-release").models[0]
    speeds = AnalyticalSpeeds()
    together = speeds.samples_per_s(model, (Tasks(0, 2, 2),))
    apart = speeds.samples_per_s(model, (Tasks(0, 2, 0), Tasks(1, 0, 2)))
    assert together == pytest.approx(2 * 32 / (0.449 + 2 * 51.1 / 91.875))
    assert apart == pytest.approx(2 * 32 / (0.449 + 2 * 51.1 / (91.875 / 2)))
    assert speeds.most_samples_per_s(model, 2, 2, FOUR) >= together


def test_splits_never_meet() -> None:
    assert [split_of(seed) for seed in (0, 1_000_000, 2_999_999, 3_000_000)] == [*Split, None]
    ranges = list(SEEDS.values())
    assert all(not set(a[:: 10**5]) & set(b) for a in ranges for b in ranges if a is not b)
    with pytest.raises(UsageError):
        seeds_of(Split.TEST, 2, start=999_999)


@pytest.mark.parametrize("name", ["dl2-release", "dl2-development"])
def test_generated_jobs(name: str) -> None:
    workload = load_workload(name)
    cluster = SimCluster.equal(workload.nodes, workload.cpus, workload.gpus)
    speeds = FitSpeeds(workload.speeds.partition(":")[2])
    jobs = generate(workload, 7, speeds, cluster)
    assert jobs == generate(workload, 7, speeds, cluster) != generate(workload, 8, speeds, cluster)
    assert len(jobs) == workload.count
    first = workload.lengths["mean_min"][0] / workload.lengths["longest_min"] * workload.lengths["epochs_at_longest"]
    assert {job.model.name for job in jobs if job.epochs == first} == {workload.models[0].name}  # by bucket
    per_slot = [sum(job.arrival_s == slot * 1200 for job in jobs) for slot in range(100)]
    assert max(per_slot) <= workload.arrivals["max_per_slot"]


def test_load_is_demand_over_capacity() -> None:
    """Two jobs of 100 s on 2 GPUs each; 4 GPUs, arrivals over 300 s and a slot: 400 / 1600."""
    jobs = (job("x", ring("a"), 200, 2), job("y", ring("a"), 200, 2, arrival_s=300))
    load = offered_load(jobs, FOUR, LINEAR, SLOT_S)
    assert load == Load(gpu_share=400 / (4 * 400), cpu_share=400 / (16 * 400), span_s=400)
    closer = stretched(jobs, load, 0.5, SLOT_S)
    assert [one.arrival_s for one in closer] == pytest.approx([0, 100])
    assert offered_load(closer, FOUR, LINEAR, SLOT_S).share == pytest.approx(0.5)
    with pytest.raises(UsageError, match="even if all arrive at once"):
        stretched(jobs, load, 9.0, SLOT_S)


def test_the_bound_holds_under_variation() -> None:
    varied = replace(SETTINGS, disturbance=Disturbance(seed=3, speed_variation=0.3))
    jobs = tuple(job(f"j{index}", ring("a"), 300, 2) for index in range(4))
    outcomes, _ = per_job_optimum(jobs, FOUR, LINEAR, varied)
    found = simulate(jobs, FOUR, SCHEDULERS["srtf"], LINEAR, varied)
    assert all((a.finish_s or 0) >= (b.finish_s or 0) - 1e-9 for a, b in zip(found.jobs, outcomes, strict=True))
    assert any(a.finish_s == b.finish_s for a, b in zip(found.jobs, outcomes, strict=True))
