"""Job tables from cluster traces: the declared rule row by row, and that no result passes for a measurement."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleet_tables import pl
from helpers import shared_folder

from graphcost.cli.main import main
from graphcost.features import features_of
from graphcost.fleet.recorded import shipped_rule
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions
from graphcost.sim.traces import read_trace
from graphcost.sim.traces.pollux import APPLICATIONS

PHILLY = "submit_s,duration_s,num_gpus,vc\n0,360000,1,a\n5,360000,8,a\n9,3600,16,b\n"
POLLUX = (
    "workload,name,time,application,num_replicas,batch_size\n1,bert-0,5,bert,4,48\n"
    "2,bert-0,7,bert,1,12\n2,cifar-1,9,cifar10,2,256\n"
)


def made(folder: Path, text: str, *options: str, suffix: str = ".parquet") -> Path:
    (folder / "trace.csv").write_text(text)
    output = folder / f"jobs{suffix}"
    words = ["fleet", "extract", "--trace", str(folder / "trace.csv"), "--output", str(output)]
    assert main([*words, "--quiet", *options]) == 0
    return output


def job(gpus: int, hours: float, model: str | None = None) -> Any:
    return SimpleNamespace(job_id="j", gpus=gpus, duration_s=hours * 3600 / gpus, gpu_hours=None, model=model)


@pytest.mark.parametrize(
    ("gpus", "gpu_hours", "uniform", "model"),
    [
        (1, 0.5, 0.0, "zoo:resnet18"),
        (1, 0.5, 0.495, "zoo:resnet18"),  # 495 of 998: up to 0.49599
        (1, 1.0, 0.497, "zoo:neumf-ml20m"),
        (8, 1.01, 0.0, "zoo:deepspeech2"),
        (1, 10.0, 0.999, "zoo:bert-base"),
        (2, 100.0, 0.5, "zoo:yolov3"),
        (64, 100.1, 0.5, "zoo:resnet50"),
        (64, 1e6, 0.999999, "zoo:resnet50"),
    ],
)
def test_a_job_s_class_gives_its_model(gpus: int, gpu_hours: float, uniform: float, model: str) -> None:
    assert shipped_rule().model_of(job(gpus, gpu_hours), uniform) == model
    assert shipped_rule().model_of(job(gpus, gpu_hours, "zoo:vgg16"), uniform) == "zoo:vgg16"


def test_the_rule_has_a_batch_for_every_model_it_can_name() -> None:
    rule = shipped_rule()
    named = {name for _, models in rule.classes for name in models} | {model for model, _ in APPLICATIONS.values()}
    assert named == set(rule.batch)
    assert [rule.arch_of(gpus, 8) for gpus in (1, 2, 8, 9)] == ["single", "local", "local", "ps"]


def test_rows_are_the_models_features(tmp_path: Path) -> None:
    rows = pl.read_parquet(made(tmp_path, PHILLY)).to_dicts()
    # GPU hours 100, 800 and 16: yolov3, resnet50, yolov3.
    expected = (("zoo:yolov3", "single", 1, 8), ("zoo:resnet50", "local", 8, 64), ("zoo:yolov3", "ps", 16, 8))
    assert [row["gpu_hours"] for row in rows] == [100.0, 800.0, 16.0]
    for row, (model, arch, gpus, batch) in zip(rows, expected, strict=True):
        options = AnalysisOptions(
            arch=arch, gpus=gpus, cluster="pai-paper-base", profile="paper", load=LoadOptions(batch=batch)
        )
        found = features_of(model, options)
        assert (row["arch"], row["cnodes"], row["batch"]) == (arch, gpus, batch)
        for name in ("input_bytes", "flops", "mem_bytes", "dense_weight_bytes", "dense_model_bytes"):
            assert row[name] == getattr(found, name), (model, name)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_it_is_called_an_example_wherever_it_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    jobs = str(made(tmp_path, PHILLY, suffix=suffix))
    page, again = tmp_path / "page.html", tmp_path / f"again{suffix}"
    capsys.readouterr()
    for source in (jobs, str(again)):  # per-job output carries the mark on
        words = ["fleet", "characterize", source, "--quiet"]
        assert main([*words, "--output", str(page), *(["--output", str(again)] if source == jobs else [])]) == 0
        body = page.read_text().partition("<script")[0]
        assert "<strong>EXAMPLE from the trace philly" in body and "(example)</figcaption>" in body
        assert main(words) == 0
        text = capsys.readouterr().out
        assert "not recorded; graphcost" in text and "msr-fiddle/philly-traces" in text and "published" not in text


def test_parts_keep_their_ids_apart_and_unknown_times_stay_out(tmp_path: Path) -> None:
    found = pl.read_parquet(made(tmp_path, POLLUX))
    assert found["job_id"].to_list() == ["1/bert-0", "2/bert-0", "2/cifar-1"] and "gpu_hours" not in found.columns
    assert found["arch"].to_list() == ["local", "single", "local"]


def test_usage_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.csv").write_text("submit_s,duration_s,num_gpus,vc\n0,x,1,a\n0,60,1,a\n")
    bad, output = str(tmp_path / "bad.csv"), str(tmp_path / "o.csv")
    for words, code, says in (
        ([], 2, "give --manifest FILE.csv (models) or --trace FILE.csv"),
        (["--manifest", "m.csv", "--trace", bad], 2, "one of them"),
        (["--trace", bad], 3, "row 2, column duration_s: 'x' is not a number"),
        (["--trace", str(tmp_path / "none.csv")], 3, "cannot be read as a trace"),
    ):
        assert main(["fleet", "extract", "--output", output, *words]) == code
        assert says in capsys.readouterr().err
    assert main(["fleet", "extract", "--output", output, "--trace", bad, "--skip-bad-rows"]) == 0
    assert "1 rows left out: bad rows" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["philly_jobs", "alibaba_openb_2023_pods", "pollux_osdi21_workloads"])
def test_whole_public_traces(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared_folder()
    trace = folder / "data" / "traces" / f"{name}.csv" if folder else Path("none")
    if not trace.exists():
        pytest.skip("the public traces are not at hand ($GRAPHCOST_SHARED)")
    output = tmp_path / "jobs.parquet"
    assert main(["fleet", "extract", "--trace", str(trace), "--output", str(output)]) == 0
    found = pl.read_parquet(output)
    rows = [row for part in read_trace(trace).parts for row in part]
    assert len(found) == len(rows) and found["cnodes"].sum() == sum(row.gpus for row in rows)
    for command in ("characterize", "project", "sweep"):
        assert main(["fleet", command, str(output), "--quiet"]) == 0
        assert "EXAMPLE from the trace" in capsys.readouterr().out
