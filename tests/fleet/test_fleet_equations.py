"""Whole columns against the single-job path, case studies, and the closed form of the projection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fleet_tables import CASES, pl, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.arch import ARCHITECTURES, Placement
from graphcost.device_db import load_cluster
from graphcost.engine.paper import PaperFeatures, paper_times
from graphcost.fleet import characterize, hardware_of, project
from graphcost.fleet.evaluate import Evaluator
from graphcost.fleet.jobs import Jobs
from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, KINDS, LOCAL, PEARL, PS, SINGLE
from graphcost.fleet.project import move
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.placing import AnalysisOptions, resolve
from graphcost.predict.paper import paper_features
from graphcost.sources import load_model
from graphcost.training import plan_step

BASE = hardware_of(load_cluster("pai-paper-base"))
TIMES = ("input_s", "compute_s", "memory_s", "comm_s", "step_s")

amounts = st.one_of(st.just(0.0), st.floats(1.0, 1e15), st.integers(0, 10**15).map(float))
features = st.tuples(amounts, amounts, amounts, amounts, amounts)


def jobs_of(kind: Any, rows: list[tuple[float, ...]], model_bytes: float = 0.0) -> Jobs:
    """Rows of cNodes, input, FLOPs, memory, dense and sparse weights."""
    cnodes, inputs, flops, mem, dense, sparse = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    model = np.full(len(rows), model_bytes)
    return Jobs(
        np.full(len(rows), kind.code, dtype=np.uint8), cnodes, np.ones(len(rows)), inputs, flops, mem, dense + sparse,
        model, np.zeros(len(rows)), np.ones(len(rows), dtype=bool),
    )  # fmt: skip


def single_job(kind: Any, cnodes: int, row: tuple[float, ...], cluster: Any) -> tuple[float, ...]:
    """One job through the engine, with the architecture's own media and sharing."""
    arch = ARCHITECTURES[kind.arch]
    filled = -(-cnodes // cluster.server.gpus)
    servers = cnodes if kind is PS else max(2, filled) if kind is ALLREDUCE_CLUSTER else filled
    place = Placement(cnodes, servers, servers if kind is PS else 0, cluster)
    # A cluster job's cNodes fill servers, however many servers its weights cross.
    sharing = arch.paper_input_sharing(Placement(cnodes, servers if kind is PS else filled, 0, cluster))
    inputs, flops, mem, dense, sparse = row
    times = paper_times(
        PaperFeatures(inputs, flops, mem, dense + sparse), cluster, arch.paper_media(place), input_sharing=sharing
    )
    return times.input_s, times.compute_s, times.memory_s, times.weight_s, times.step_s


@given(st.data())
def test_columns_equal_the_single_job_path_to_the_last_bit(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    most = 1 if kind is SINGLE else 8 if kind.one_server else 6000
    counts = data.draw(st.lists(st.integers(1, most), min_size=1, max_size=8))
    rows = [data.draw(features) for _ in counts]
    cluster = data.draw(st.sampled_from(["pai-paper-base", "dgx-a100", "pai-server-nonvl"]).map(load_cluster))
    piece = Evaluator(jobs_of(kind, [(n, *row) for n, row in zip(counts, rows, strict=True)]))
    hardware = hardware_of(cluster)
    times = piece.times(kind, hardware)
    step_s = piece.step_s(kind, hardware)
    for index, (cnodes, row) in enumerate(zip(counts, rows, strict=True)):
        got = tuple(
            float(column[index])
            for column in (times.input_s, times.compute_s, times.memory_s, times.weight_s, step_s)
        )
        assert got == single_job(kind, cnodes, row, cluster)
        assert step_s[index] == times.step_s[index]


@pytest.mark.parametrize(
    ("arch", "gpus"), [("single", 1), ("local", 4), ("ps", 12), ("allreduce", 8), ("allreduce", 24), ("pearl", 8)]
)
def test_a_model_in_a_table_takes_what_analyze_says(tmp_path: Path, arch: str, gpus: int) -> None:
    """A table row with the features of a real graph, against `analyze --profile paper`."""
    found = analyze("zoo:resnet50", arch=arch, gpus=gpus, batch=32, cluster="pai-paper-base", profile="paper")
    step = found.step
    one = features_of(arch, gpus)
    row = ("r50", arch, gpus, 32, one.input_bytes, one.flops, one.mem_bytes, one.weight_bytes, 0)
    output = tmp_path / "out.parquet"
    characterize(write(tmp_path / "jobs.parquet", [row]), BASE, output=str(output))
    got = pl.read_parquet(output).row(0, named=True)
    assert [got[name] for name in TIMES] == [step.input_s, step.compute_s, step.memory_s, step.comm_s, step.step_s]


def features_of(arch: str, gpus: int) -> PaperFeatures:
    options = AnalysisOptions(
        arch=arch, gpus=gpus, cluster="pai-paper-base", profile="paper", load=LoadOptions(batch=32)
    )
    choice = resolve(options)
    plan = plan_step(build_graph(load_model("zoo:resnet50", options.load)), choice.recipe)
    return paper_features(plan, choice.arch, choice.placement)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_case_studies_from_a_table(tmp_path: Path, suffix: str) -> None:
    """Milliseconds printed for the study's features at its constants, without contention on PCIe."""
    expected_ms = {  # T_d, T_flop, T_mem, T_w, T_total
        "resnet50": (5.43, 202.6, 45.6, 10.2, 263.8),
        "nmt": (0.00, 324.7, 145.1, 38.0, 507.8),
        "bert": (0.01, 272.7, 153.3, 42.9, 468.9),
        "speech": (114.9, 1026, 29.1, 0, 1170),
        "multi-interests": (37.3, 13.7, 143.4, 73.2, 267.7),
        "gcn": (0.17, 43.0, 36.8, 85.7, 165.7),
        "gcn-what-if": (0.17, 43.0, 36.8, 1800, 1880),
    }
    output = tmp_path / f"out{suffix}"
    characterize(write(tmp_path / f"jobs{suffix}", CASES), BASE, input_sharing=1, output=str(output))
    read = pl.read_csv if suffix == ".csv" else pl.read_parquet
    got = {row["job_id"]: [row[name] * 1e3 for name in TIMES] for row in read(output).to_dicts()}
    assert list(got) == [case[0] for case in CASES]
    for name, printed in expected_ms.items():
        assert got[name] == pytest.approx(printed, rel=0.006, abs=0.01), name


counts = st.integers(1, 512)


@given(counts, st.tuples(*(st.floats(1e3, 1e12),) * 4), st.integers(1, 8))
def test_the_closed_form_of_the_projection(cnodes: int, row: tuple[float, ...], most: int) -> None:
    """s1 = 1 / (1 + (k-1) d - w (1 - 1/r)); throughput = s1 n'/n; r = (1/3.125 + 1/10) / (1/50) = 21, or 1.235."""
    jobs = jobs_of(PS, [(cnodes, *row, 0.0)])
    before = Evaluator(jobs, input_sharing=most).times(PS, BASE)
    d, w = float(before.input_s[0] / before.step_s[0]), float(before.weight_s[0] / before.step_s[0])
    for kind, r, moved_to in (
        (ALLREDUCE_LOCAL, 21.0, min(cnodes, 8)),
        (PEARL, 21.0, min(cnodes, 8)),
        (ALLREDUCE_CLUSTER, 0.42 / 0.34, cnodes),
    ):
        # cNodes spread evenly over the fewest servers of 8
        k = min(most, -(-moved_to // -(-moved_to // 8)))
        moved = move(jobs, before, kind, BASE, most)
        s1 = 1 / (1 + (k - 1) * d - w * (1 - 1 / r))
        assert float(moved.speedup[0]) == pytest.approx(s1, rel=1e-9)
        assert float(moved.throughput_speedup[0]) == pytest.approx(s1 * moved_to / cnodes, rel=1e-9)


def test_a_job_of_168_cnodes_never_gains_on_eight() -> None:
    """The cap of 21 over 168 / 8 = 21: even a step that is all weights gains nothing."""
    jobs = jobs_of(PS, [(160, 0.0, 0.0, 0.0, 1e9, 0.0), (168, 0.0, 0.0, 0.0, 1e9, 0.0)])
    moved = move(jobs, Evaluator(jobs).times(PS, BASE), ALLREDUCE_LOCAL, BASE)
    assert moved.speedup == pytest.approx([21.0, 21.0])
    assert moved.throughput_speedup == pytest.approx([1.05, 1.0])


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(counts, features), min_size=1, max_size=12), st.sampled_from([".csv", ".parquet"]))
def test_characterize_adds_up(tmp_path: Path, drawn: list[tuple[int, tuple[float, ...]]], suffix: str) -> None:
    """Shares add up to 1 under every weighting, types to the whole, whatever the features are."""
    rows = []
    for index, (cnodes, feature) in enumerate(drawn):
        kind = KINDS[index % len(KINDS)]
        n = 1 if kind is SINGLE else min(cnodes, 8) if kind.one_server else cnodes
        rows.append((f"j{index}", kind.id, n, 4, *feature))
    found = characterize(write(tmp_path / f"jobs{suffix}", rows), BASE)
    assert found.overall.jobs == len(rows) == sum(one.jobs for one in found.types)
    assert found.overall.cnodes == sum(row[2] for row in rows)
    for one in (*found.types, found.overall):
        assert sum(one.bound.values()) + one.idle == one.jobs
        for broken in (one.by_job, one.by_cnode):
            parts = (broken.input, broken.compute, broken.memory, broken.communication)
            total = sum(part.mean for part in parts)
            assert total == pytest.approx(1.0) or (one.idle and total < 1)
            for part in parts:
                assert list(part.quantiles) == sorted(part.quantiles)
                assert part.quantiles[0] - 1e-4 <= part.mean <= part.quantiles[-1] + 1e-4


def test_shares_by_hand(tmp_path: Path) -> None:
    """70 % of 10 GB/s, 1 TB/s and 11 TFLOP/s: 70 MB and 7 GB take 10 ms each, 7.7 GFLOP 1 ms."""
    rows = [
        ("a", "ps", 1, 1, 70e6, 0, 7e9, 0, 0),  # 10 ms input, 10 ms memory
        ("b", "ps", 3, 1, 0, 7.7e9, 0, 0, 0),  # 1 ms compute
    ]
    found = characterize(write(tmp_path / "jobs.csv", rows), BASE)
    (ps,) = found.types
    assert (ps.type, ps.jobs, ps.cnodes) == ("PS/Worker", 2, 4)
    assert [ps.by_job.input.mean, ps.by_job.compute.mean, ps.by_job.memory.mean] == pytest.approx([0.25, 0.5, 0.25])
    # by cNode: (0.5 x 1 + 0 x 3) / 4
    assert [ps.by_cnode.input.mean, ps.by_cnode.compute.mean] == pytest.approx([0.125, 0.75])
    assert ps.by_gpu_hour is None


def test_gpu_hours_are_a_third_weighting(tmp_path: Path) -> None:
    columns = ("job_id", "arch", "cnodes", "batch", "input_bytes", "flops", "mem_bytes", "dense_weight_bytes",
               "sparse_weight_bytes", "gpu_hours")  # fmt: skip
    rows = [("a", "single", 1, 1, 0, 1e9, 0, 0, 0, 9.0), ("b", "single", 1, 1, 0, 0, 1e9, 0, 0, 1.0)]
    found = characterize(write(tmp_path / "jobs.csv", rows, columns), BASE)
    assert found.overall.by_gpu_hour is not None
    assert found.overall.by_gpu_hour.compute.mean == pytest.approx(0.9)


def test_why_jobs_win_and_lose(tmp_path: Path) -> None:
    """One job for each reason; numbers from the closed form."""
    columns = ("job_id", "arch", "cnodes", "batch", "input_bytes", "flops", "mem_bytes", "dense_weight_bytes",
               "sparse_weight_bytes", "dense_model_bytes", "sparse_model_bytes")  # fmt: skip
    rows = [
        ("wins", "ps", 8, 1, 0, 0, 0, 1e9, 0, 2e9, 0),  # s1 = 21
        ("shrinks", "ps", 64, 1, 0, 7.7e12, 0, 1e9, 0, 2e9, 0),  # s1 > 1, but 8 cNodes for 64
        ("input", "ps", 8, 1, 1e9, 0, 0, 1e6, 0, 2e9, 0),  # eight copies share PCIe
        ("same", "ps", 1, 1, 1e9, 1e9, 1e9, 0, 0, 2e9, 0),  # no weights, alone on PCIe
        ("dense-too-large", "ps", 8, 1, 0, 0, 0, 1e9, 0, 20e9, 0),  # 20 GB in 16 GB
        ("tables", "ps", 8, 1, 0, 0, 0, 1e8, 9e8, 2e9, 80e9),  # 82 GB, but 2 + 80/8 = 12 GB under PEARL
        ("other", "single", 1, 1, 0, 1e9, 0, 0, 0, 1e9, 0),
    ]  # fmt: skip
    source = write(tmp_path / "jobs.parquet", rows, columns)
    output = tmp_path / "out.parquet"
    found = project(source, BASE, to="allreduce-local", output=str(output))
    got = {row["job_id"]: row for row in pl.read_parquet(output).to_dicts()}
    assert [got[name]["reason"] for name in got] == [
        "faster: less time for weights",
        "faster per cNode, but fewer cNodes",
        "slower: input copies share one PCIe",
        "no change",
        "replica does not fit in device memory",
        "replica does not fit in device memory",
        "not a PS/Worker job: not projected",
    ]
    assert got["wins"]["speedup"] == pytest.approx(21) and got["wins"]["throughput_speedup"] == pytest.approx(21)
    assert got["shrinks"]["cnodes_to"] == 8 and got["shrinks"]["throughput_speedup"] < 1 < got["shrinks"]["speedup"]
    assert got["dense-too-large"]["speedup"] is None and got["other"]["step_s_to"] is None
    assert [got[name]["best_arch"] for name in got] == [
        "allreduce-local", "allreduce-cluster", "ps", "ps", "ps", "pearl", "single",
    ]  # fmt: skip
    assert found.ps_jobs == 6 and found.other_jobs == 1
    assert {one.to: one.gains_throughput for one in found.targets} == {
        "allreduce-local": 1, "allreduce-cluster": 2, "pearl": 2,
    }  # fmt: skip
    project(source, BASE, output=str(output))
    best = {row["job_id"]: row for row in pl.read_parquet(output).to_dicts()}
    assert best["tables"]["cnodes_to"] == 8 and best["tables"]["throughput_speedup"] == pytest.approx(21)
    assert best["other"]["throughput_speedup"] == 1 and best["input"]["step_s_to"] == best["input"]["step_s"]
    assert all(row["throughput_speedup"] >= 1 for row in best.values())


def test_calibrated_says_what_it_knows(tmp_path: Path) -> None:
    """Effective rates are below nominal ones, and the notes name what a job table cannot tell."""
    cluster = load_cluster("dgx1-v100")
    calibrated = hardware_of(cluster, type(BASE.profile).CALIBRATED)
    for kind in (PS, LOCAL):
        rates = calibrated.of(kind)
        assert rates.input_bytes_per_s <= cluster.server.pcie.bytes_per_s
        assert rates.mem_bytes_per_s < cluster.device.mem_bytes_per_s
    text = " ".join(calibrated.notes)
    assert "no operator mix" in text and "not known" in text and "nothing hides" in text
    found = characterize(write(tmp_path / "jobs.csv", CASES), calibrated)
    assert found.hardware.profile == "calibrated" and found.hardware.notes == calibrated.notes
