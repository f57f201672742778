"""Speeds from a measured table and from the cost engine, and the figures of an independent simulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import shared_folder

import graphcost
from graphcost.errors import DataFileError, UsageError
from graphcost.sched import SCHEDULERS, Resources, Tasks
from graphcost.sim import Disturbance, Settings, SimCluster, TrainedModel, per_job_optimum, scalings, simulate
from graphcost.sim.setup import speeds_of
from graphcost.sim.speeds import FitSpeeds, TableSpeeds
from graphcost.sim.workloads import generate, load_workload

PAIR = Resources.of(1, 1)
TABLE = """source,model,throughput,notes
one,net,10,n_ps=1 n_workers=1; x
one,net,18,n_ps=1 n_workers=2; x
one,net,20,n_ps=2 n_workers=2; x
one,net,12,n_ps=2 n_workers=1; x
one,net,11,n_ps=3 n_workers=1; x
one,net,900,n_ps=5 n_workers=1; x
other,net,99,n_ps=1 n_workers=1; x
"""


def table(tmp_path: Path, text: str = TABLE) -> Path:
    path = tmp_path / "speeds.csv"
    path.write_text(text, "utf-8")
    return path


def test_a_table_is_met_at_its_points_and_cleaned(tmp_path: Path) -> None:
    speeds = TableSpeeds(table(tmp_path), "one")
    model = TrainedModel("net", 1, 1, PAIR, PAIR)
    at = {(w, p): speeds.samples_per_s(model, (Tasks(0, w, p),)) for w, p in ((1, 1), (2, 1), (2, 2), (1, 2))}
    assert at == pytest.approx({(1, 1): 10, (2, 1): 18, (2, 2): 20, (1, 2): 12})
    assert speeds.samples_per_s(model, (Tasks(0, 1, 5),)) < 50  # 900 is over four times the others at one worker
    assert "5 measured points, 1 impossible" in speeds.note
    assert min(speeds.samples_per_s(model, (Tasks(0, w, p),)) for w in range(1, 33) for p in range(1, 33)) >= 0.1
    assert speeds.samples_per_s(model, (Tasks(0, 1, 0),)) == 0


@pytest.mark.parametrize(
    ("text", "source", "kind", "message"),
    [
        (TABLE, None, UsageError, "holds 2 experiments .* choose one with --speed-source"),
        (TABLE, "oen", UsageError, "did you mean 'one'"),
        (TABLE.replace("18,", "fast,"), "one", DataFileError, "row 3, column throughput: 'fast'"),
        (TABLE.replace("n_ps=2 n_workers=2", "two"), "one", DataFileError, "row 4, column notes"),
        ("a,b\n", None, DataFileError, "no column 'source'"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, source: str | None, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        TableSpeeds(table(tmp_path, text), source)


def test_engine_speeds_are_the_analyses() -> None:
    """Two nodes of 8 GPUs, AllReduce; and parameter servers: the numbers of ``graphcost analyze``."""
    speeds = speeds_of("engine:aws-p3.16xlarge")
    options = {"cluster": "aws-p3.16xlarge", "batch": 32}
    ring = TrainedModel("zoo:mlp", 32, 1, PAIR, None, batch_grows=True)
    tasks = (Tasks(0, 4, 0), Tasks(1, 4, 0))
    expected = graphcost.analyze("zoo:mlp", gpus=8, servers=2, arch="allreduce", **options).step.samples_per_s
    assert speeds.samples_per_s(ring, tasks) == pytest.approx(expected)
    served = TrainedModel("zoo:mlp", 32, 1, PAIR, PAIR, batch_grows=True)
    expected = graphcost.analyze("zoo:mlp", gpus=8, servers=1, ps=2, arch="ps", **options).step.samples_per_s
    assert speeds.samples_per_s(served, (Tasks(0, 8, 2),)) == pytest.approx(expected)
    split = TrainedModel("zoo:mlp", 128, 1, PAIR, None)  # four workers divide 128
    expected = graphcost.analyze("zoo:mlp", gpus=4, arch="allreduce", **options).step.samples_per_s
    assert speeds.samples_per_s(split, (Tasks(0, 4, 0),)) == pytest.approx(expected)
    with pytest.raises(UsageError, match=r"a worker of 0.5 GPUs; predicted speeds are of whole ones"):
        speeds.check(TrainedModel("zoo:mlp", 32, 1, Resources.of(1, 0.5), None))


def test_the_zoo_workload_runs() -> None:
    workload = load_workload("zoo")
    cluster = SimCluster.equal(4, workload.cpus, workload.gpus)
    speeds = speeds_of(workload.speeds)
    jobs = generate(workload, 1, speeds, cluster, 12)
    found = simulate(jobs, cluster, SCHEDULERS["optimus-exact"], speeds)
    _, best = per_job_optimum(jobs, cluster, speeds)
    assert found.metrics.unfinished == 0 and best.mean_jct_s and best.mean_jct_s <= (found.metrics.mean_jct_s or 0)


def _mean_slots(name: str, speeds: FitSpeeds | TableSpeeds, traces: int) -> dict[str, tuple[float, float]]:
    """Scheduler -> mean completion in slots, fractional and rounded up; no scaling cost, no noise."""
    workload = load_workload(name)
    cluster = SimCluster.equal(workload.nodes, workload.cpus, workload.gpus)
    world = Settings(workload.slot_s, scalings().find("none"), Disturbance())
    sums: dict[str, list[tuple[float, float]]] = {"drf": [], "optimus-exact": [], "bound": []}
    for seed in range(traces):
        jobs = generate(workload, seed, speeds, cluster)
        for scheduler, values in sums.items():
            if scheduler == "bound":
                metrics = per_job_optimum(jobs, cluster, speeds, world)[1]
            else:
                metrics = simulate(jobs, cluster, SCHEDULERS[scheduler], speeds, world).metrics
            values.append((metrics.mean_jct_slots or 0, metrics.mean_jct_whole_slots or 0))
    return {name: (sum(f for f, _ in v) / traces, sum(w for _, w in v) / traces) for name, v in sums.items()}


@pytest.mark.slow
def test_optimus_with_exact_smooth_speeds_is_optimal_on_a_roomy_cluster() -> None:
    """An independent simulator on the same fits, 500 nodes, 10 traces: optimum = Optimus 5.20, DRF 12.62 slots."""
    found = _mean_slots("dl2-release", FitSpeeds("release"), 3)
    assert found["optimus-exact"][0] == pytest.approx(found["bound"][0], rel=0.02)
    assert found["drf"][0] / found["bound"][0] == pytest.approx(12.62 / 5.20, rel=0.08)


@pytest.mark.slow
def test_drf_as_an_independent_simulator_has_it() -> None:
    """Development version's table and sizes, 60 traces: DRF 9.26 +- 0.50 whole slots, 8.68 fractional."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("the measured speed tables are not here")
    speeds = TableSpeeds(folder / "data" / "dl2_speed.csv", "yxd886")
    found = _mean_slots("dl2-development", speeds, 60)
    assert found["drf"][1] == pytest.approx(9.26, abs=1.0) and found["drf"][0] == pytest.approx(8.68, abs=1.0)
    assert found["bound"][0] < found["optimus-exact"][0] < found["drf"][0] / 2
