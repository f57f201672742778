"""The synthetic population: decided by its seed, declared in its file, true to what it was fitted to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fleet_tables import pl

from graphcost.cli.main import main
from graphcost.fleet import (
    Study,
    characterize,
    generate,
    hardware_of,
    judge_targets,
    load_population,
    open_jobs,
    project,
    study_assumptions,
    sweep,
)
from graphcost.fleet.population import DRAW_ROWS, as_jobs, draw
from graphcost.fleet.targets import METRICS

PEOPLE = load_population()
BASE = hardware_of(PEOPLE.cluster)


def test_a_seed_decides_every_row(tmp_path: Path) -> None:
    """The same bytes twice, another seed other rows, and a shorter table is the beginning of a longer one."""
    names = ("a.csv", "b.csv", "other.csv", "long.csv")
    for name, seed, count in zip(names, (5, 5, 6, 5), (300, 300, 300, DRAW_ROWS + 500), strict=True):
        generate(str(tmp_path / name), seed=seed, count=count)
    read = {name: pl.read_csv(tmp_path / name, comment_prefix="#") for name in names}
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert not read["a.csv"].drop("job_id").equals(read["other.csv"].drop("job_id"))
    assert read["a.csv"].equals(read["long.csv"].head(300))
    assert read["long.csv"]["job_id"].n_unique() == DRAW_ROWS + 500
    # Rows of a later block come from that block's own stream, whatever came before it.
    _, columns = draw(PEOPLE, 5, 1)
    assert read["long.csv"]["flops"][DRAW_ROWS:].to_list() == columns["flops"][:500].astype(int).tolist()
    assert read["long.csv"]["flops"][DRAW_ROWS:].to_list() != read["long.csv"]["flops"][:500].to_list()


def test_known_rows_of_a_seed(tmp_path: Path) -> None:
    """What a seed means may change only together with the declared distributions."""
    generate(str(tmp_path / "a.csv"), seed=0, count=2)
    stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0, spawn_key=(0,))))
    picks = stream.random((3, DRAW_ROWS))[0][:2]
    edges = np.cumsum([entry["job_share"] for entry in PEOPLE.types.values()])
    words = [list(PEOPLE.types)[int(np.searchsorted(edges, pick, side="right"))] for pick in picks]
    assert pl.read_csv(tmp_path / "a.csv", comment_prefix="#")["arch"].to_list() == words


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_it_says_that_it_is_synthetic(capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    """In the file, in files made from it, and in what is printed of it."""
    file, derived = tmp_path / f"jobs{suffix}", tmp_path / f"derived{suffix}"
    assert main(["fleet", "generate", "--seed", "1", "--count", "3000", "--output", str(file)]) == 0
    assert "SYNTHETIC" in capsys.readouterr().err
    assert main(["fleet", "characterize", str(file), "--output", str(derived)]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1].startswith("SYNTHETIC population") and "fitted: the population was made" in text
    for path in (file, derived):
        mark = open_jobs(str(path)).synthetic
        assert mark is not None and mark.startswith("SYNTHETIC") and "not measured" in mark and "--seed 1" in mark
    if suffix == ".csv":
        assert file.read_text().startswith("# graphcost.synthetic: SYNTHETIC population")
    assert main(["fleet", "characterize", str(derived), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"]["synthetic"].startswith("SYNTHETIC")


def test_csv_and_parquet_hold_the_same_jobs(tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet"):
        generate(str(tmp_path / f"jobs{suffix}"), seed=3, count=500)
    left = pl.read_csv(tmp_path / "jobs.csv", comment_prefix="#")
    assert left.equals(pl.read_parquet(tmp_path / "jobs.parquet"))


def test_a_drawn_block_is_what_the_file_holds(tmp_path: Path) -> None:
    """The fit sees the jobs that a user's table holds."""
    file = str(tmp_path / "jobs.parquet")
    generate(file, seed=9, count=DRAW_ROWS)
    drawn = as_jobs(PEOPLE, *draw(PEOPLE, 9, 0))
    row = 0
    for _, jobs in open_jobs(file).blocks(PEOPLE.cluster):
        for name in ("kind", "cnodes", "input_bytes", "flops", "mem_bytes", "weight_bytes", "dense_model_bytes",
                     "sparse_model_bytes"):  # fmt: skip
            assert np.array_equal(getattr(jobs, name), getattr(drawn, name)[row : row + len(jobs)]), name
        row += len(jobs)
    assert row == DRAW_ROWS


def test_targets_are_declared() -> None:
    names = [target["name"] for target in PEOPLE.targets]
    assert sorted(names) == sorted(METRICS) and len(set(names)) == len(names)
    for target in PEOPLE.targets:
        assert target["use"] in ("fitted", "held-out") and target["tag"].split(";")[0].split(" ")[0] in (
            "verified", "recalled", "derived",
        )  # fmt: skip
    held = {target["name"] for target in PEOPLE.targets if target["use"] == "held-out"}
    # The figures that judge the population, and one that was derived from one of them.
    assert {"allreduce_gain", "ethernet_speedup", "single_most_sensitive", "local_most_sensitive",
            "ps_most_sensitive", "ps_comm_share"} <= held  # fmt: skip


def test_targets_on_a_fresh_seed(tmp_path: Path) -> None:
    """Fitted targets are met on a seed that the fit has not seen; so are the abstract's held-out figures."""
    file = str(tmp_path / "jobs.parquet")
    generate(file, seed=77, count=100_000)
    study = Study(characterize(file, BASE), project(file, BASE), sweep(file, BASE))
    judged = {one.name: one for one in judge_targets(PEOPLE, study)}
    assert set(judged) == set(METRICS)
    assert [name for name, one in judged.items() if one.use == "fitted" and not one.met] == []
    for name in ("allreduce_gain", "ethernet_speedup", "single_most_sensitive", "local_most_sensitive",
                 "ps_most_sensitive"):  # fmt: skip
        assert judged[name].met, judged[name]
    # Published for the constants, whatever the jobs: no job gains more from Ethernet, or on AllReduce.
    assert study.sweep is not None and study.projection is not None
    assert study.sweep.ethernet_cap == pytest.approx(0.42 / 0.18)
    assert study.sweep.ethernet_speedup is not None and study.sweep.ethernet_speedup < 0.42 / 0.18
    caps = {one.to: max(one.speedup_quantiles) for one in study.projection.targets}
    assert caps["allreduce-local"] < 21 * 1.003 and caps["allreduce-cluster"] < 0.42 / 0.34 * 1.003


def test_conclusions_under_other_assumptions(tmp_path: Path) -> None:
    """Communication grows with faster computing and shrinks with a faster network; overlap keeps its order."""
    file = str(tmp_path / "jobs.parquet")
    generate(file, seed=4, count=20_000)
    cases = {
        (one.overlap, one.compute_efficiency, one.comm_efficiency): one
        for one in study_assumptions(file, BASE).assumptions
    }
    assert len(cases) == 2 * 4 * 4
    base = cases["none", 0.7, 0.7]
    assert base.holds and base.largest_part == "communication"
    found = characterize(file, BASE)
    assert base.comm_share_by_cnode == pytest.approx(found.overall.by_cnode.communication.mean)
    assert base.gain_share == project(file, BASE).targets[0].gain_share
    for overlap in ("none", "ideal"):
        by_compute = [cases[overlap, e, 0.7].comm_share_by_cnode for e in (0.25, 0.5, 0.7, 1.0)]
        by_comm = [cases[overlap, 0.7, e].comm_share_by_cnode for e in (0.3, 0.5, 0.7, 1.0)]
        assert by_compute == sorted(by_compute) and by_comm == sorted(by_comm, reverse=True)
    # Who is faster per cNode depends on input and weights alone, which share one efficiency.
    assert len({round(cases["none", e, c].not_faster_per_cnode, 3) for e in (0.25, 1.0) for c in (0.3, 1.0)}) == 1


def test_faster_hardware_never_slows(tmp_path: Path) -> None:
    file = str(tmp_path / "jobs.parquet")
    generate(file, seed=4, count=5_000)
    found = sweep(file, BASE)
    for title in found.single[0].by_job:
        for resource in ("network_bytes_per_s", "pcie_bytes_per_s", "peak_flops_per_s", "mem_bytes_per_s"):
            points = [(getattr(p, resource), p.by_job[title]) for p in found.single if getattr(p, resource)]
            assert [gain for _, gain in sorted(points)] == sorted(gain for _, gain in points)
    (base,) = (point for point in found.single if point.network_bytes_per_s == 25e9 / 8)
    assert set(base.by_job.values()) == {1.0}
    assert len(found.combined) == 3 * 2 * 4 * 3
