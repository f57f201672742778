"""Job tables from manifests: models, traces, and every way a row can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pai_models import compared
from graphcost.cli.main import main
from graphcost.errors import DataFileError, UsageError
from graphcost.features import features_of
from graphcost.fleet.extract import Extraction, extract
from graphcost.frontends.options import LoadOptions
from graphcost.models_zoo.pai_study import CASES
from graphcost.placing import AnalysisOptions

pl = pytest.importorskip("polars")

PAPER = AnalysisOptions(cluster="pai-paper-base", profile="paper")


def manifest(folder: Path, *lines: str, header: str = "model,gpus,batch,arch") -> str:
    path = folder / "jobs.csv"
    path.write_text("\n".join((header, *lines)) + "\n")
    return str(path)


def trace(folder: Path, name: str = "t.json") -> Path:
    """One marked step: a product of 4 x 8 x 16, on two ranks that record no collective's size."""
    shapes = {"Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 9},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1, "args": shapes},
    ]
    data = {"schemaVersion": 1, "distributedInfo": {"world_size": 2}, "traceEvents": events}
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def only(found: Extraction) -> dict[str, Any]:
    (job,) = found.jobs
    assert job.columns is not None and found.failed == ()
    return job.columns


def test_a_row_is_the_model_s_features(tmp_path: Path) -> None:
    found = only(extract(manifest(tmp_path, "zoo:mlp,4,16,ps"), PAPER))
    expected = features_of("zoo:mlp", AnalysisOptions(
        arch="ps", gpus=4, cluster="pai-paper-base", profile="paper", load=LoadOptions(batch=16)
    ))  # fmt: skip
    assert found["job_id"] == "1:zoo:mlp" and found["arch"] == "ps" and found["cnodes"] == 4
    assert {name: found[name] for name in ("batch", "flops", "mem_bytes", "dense_weight_bytes")} == {
        "batch": 16, "flops": expected.flops, "mem_bytes": expected.mem_bytes,
        "dense_weight_bytes": expected.dense_weight_bytes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "gpus", "written", "traffic"),
    [
        ("", "", "single", 0), ("", "8", "allreduce", 4 * 7 / 8), ("1w1g", "1", "single", 0),
        ("1wNg", "4", "local", 2), ("PS/Worker", "16", "ps", 2),
        ("allreduce-local", "4", "allreduce-local", 4 * 3 / 4),
        ("allreduce-cluster", "16", "allreduce-cluster", 4 * 15 / 16), ("pearl", "8", "pearl", 4 * 7 / 8),
    ],
)  # fmt: skip
def test_words_of_a_job_table(tmp_path: Path, word: str, gpus: str, written: str, traffic: float) -> None:
    """S_w in units of W, the 669,706 fp32 gradients; PEARL has no table here, so all of it is dense."""
    found = only(extract(manifest(tmp_path, f"zoo:mlp,{gpus},8,{word}"), PAPER))
    assert found["arch"] == written
    assert found["dense_weight_bytes"] == pytest.approx(traffic * 4 * 669_706)
    assert found["sparse_weight_bytes"] == 0


def test_a_row_says_how_it_is_trained(tmp_path: Path) -> None:
    header = "model,gpus,batch,arch,job_id,dims,precision,optimizer,lookups,resource,gpu_hours"
    lines = (
        "zoo:bert-base,8,4,allreduce,mine,seq=64,bf16,sgd,uniform,V100,2.5",
        "zoo:bert-base,8,4,allreduce,,,,,,,",
    )
    found = extract(manifest(tmp_path, *lines, header=header), PAPER)
    told, plain = (job.columns or {} for job in found.jobs)
    assert (told["job_id"], told["resource"], told["gpu_hours"]) == ("mine", "V100", 2.5)
    assert told["input_bytes"] == 4 * 64 * 3 * 8 and plain["input_bytes"] == 4 * 128 * 3 * 8
    assert told["dense_weight_bytes"] * 2 == plain["dense_weight_bytes"]  # two bytes a gradient
    path = tmp_path / "o.csv"
    found.write(str(path))
    read = pl.read_csv(path)
    assert read["resource"].to_list() == ["V100", None] and read["cnodes"].to_list() == [8, 8]


def test_a_trace_s_empty_cells_are_counted_and_filled(tmp_path: Path) -> None:
    trace(tmp_path)
    bare = extract(manifest(tmp_path, "t.json,,4,"), PAPER)
    assert only(bare)["flops"] == 2 * 4 * 8 * 16 and only(bare)["cnodes"] == 2 and only(bare)["arch"] == "allreduce"
    assert bare.empty == {"input_bytes": 1, "dense_weight_bytes": 1, "sparse_weight_bytes": 1}
    assert any("no collective was recorded" in note for note in bare.jobs[0].notes)
    header = "model,batch,arch,input_bytes,dense_weight_bytes,sparse_weight_bytes,flops"
    full = extract(manifest(tmp_path, "t.json,4,ps,1e3,2e6,0,7", header=header), PAPER)
    row = only(full)
    assert full.empty == {} and (row["input_bytes"], row["dense_weight_bytes"], row["arch"]) == (1e3, 2e6, "ps")
    assert row["flops"] == 2 * 4 * 8 * 16  # what the trace tells stands


@pytest.mark.parametrize(
    ("line", "column", "message", "code"),
    [
        (",1,1,single", "model", "empty; write a model or a trace", 3),
        ("zoo:mlq,1,1,single", "model", "did you mean 'mlp'", 2),
        ("none.onnx,1,1,single", "model", "no such file", 3),
        ("zoo:mlp,0,1,ps", "gpus", "'0'; write the number of GPUs", 3),
        ("zoo:mlp,two,1,ps", "gpus", "'two'; write the number of GPUs", 3),
        ("zoo:mlp,2,1,single", "gpus", "'single' is one GPU, 2 were given", 2),
        ("zoo:mlp,16,1,pearl", "gpus", "runs inside one server", 2),
        ("zoo:mlp,2,1.5,ps", "batch", "'1.5'; write samples per GPU", 3),
        ("zoo:mlp,2,1,alreduce", "arch", "did you mean 'allreduce'", 2),
        ("zoo:mlp,2,1,zero1", "arch", "no architecture of a job table", 2),
    ],
)
def test_a_wrong_row_is_named_and_the_others_go_on(
    tmp_path: Path, line: str, column: str, message: str, code: int
) -> None:
    source = manifest(tmp_path, "zoo:mlp,1,1,single", line, "zoo:mlp,2,1,ps")
    found = extract(source, PAPER)
    assert [row.number for row in found.rows] == [1, 2, 3] and len(found.jobs) == 2
    (failed,) = found.failed
    assert failed.error.startswith(f"{source}: row 2, column {column}: ") and message in failed.error
    assert found.exit_code == failed.exit_code == code


@pytest.mark.parametrize(
    ("header", "cell", "message"),
    [
        ("dims", "seq=3", "column dims: --dim seq: zoo:mlp has no such size"),
        ("dims", "seq", "column dims: 'seq'; write sizes"),
        ("precision", "fp31", "column precision: no precision named 'fp31'; did you mean 'fp32'"),
        ("optimizer", "adm", "column optimizer: no optimizer named 'adm'; did you mean 'adam'"),
        ("lookups", "zipf:x", "column lookups: --lookups zipf:x"),
        ("gpu_hours", "long", "column gpu_hours: 'long'; write GPU hours"),
    ],
)
def test_a_wrong_cell_of_the_optional_columns(tmp_path: Path, header: str, cell: str, message: str) -> None:
    (failed,) = extract(manifest(tmp_path, f"zoo:mlp,{cell}", header=f"model,{header}"), PAPER).failed
    assert message in failed.error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; write a header with the column model"),
        ("model,gpus\n", "has a header and no jobs"),
        ("gpus,batch\n1,1\n", "has no column model"),
        ("model,gpu\nzoo:mlp,1\n", "no column 'gpu'; did you mean 'gpus'"),
        ("model,model\na,b\n", "column model is there 2 times"),
        ("model,gpus\nzoo:mlp\n", "row 1 has 1 cells and the header 2"),
        ('model\n"zoo:mlp\n', "cannot be read as CSV"),
    ],
)
def test_a_manifest_that_is_no_table(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message):
        extract(str(path), PAPER)


def test_ids_are_a_job_s_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="row 2, column job_id: 'a' is in row 1 too"):
        extract(manifest(tmp_path, "zoo:mlp,a", "zoo:mlp,a", header="model,job_id"), PAPER)


def test_workers_give_the_same_rows(tmp_path: Path) -> None:
    source = manifest(tmp_path, *(f"zoo:mlp,{gpus},8,ps" for gpus in (1, 2, 4)), "zoo:none,1,1,single")
    assert extract(source, PAPER, workers=2) == extract(source, PAPER)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_table_is_one_that_the_study_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    """Six case studies through the command line: a row takes the step that its model takes."""
    lines = [f"zoo:{name},{case.gpus},{case.arch},{case.optimizer},{name}" for name, case in CASES.items()]
    source = manifest(tmp_path, *lines, header="model,gpus,arch,optimizer,job_id")
    output, seconds = tmp_path / f"o.{suffix}", tmp_path / f"s.{suffix}"
    assert main(["fleet", "extract", "--manifest", source, "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: 6 of 6 jobs\n"
    arguments = ["fleet", "characterize", str(output), "--input-sharing", "1", "--output", str(seconds)]
    assert main(arguments) == 0
    read = pl.read_csv(seconds) if suffix == "csv" else pl.read_parquet(seconds)
    found = dict(zip(read["job_id"], read["step_s"], strict=True))
    assert found == pytest.approx({name: compared(name, case).step_s for name, case in CASES.items()})


def test_the_command_says_what_failed_and_what_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path)
    source, output = manifest(tmp_path, "t.json,,4,", "zoo:mlp,0,,", "zoo:mlp,1,8,"), tmp_path / "o.csv"
    assert main(["fleet", "extract", "--manifest", source, "--output", str(output)]) == 3
    told = capsys.readouterr()
    assert told.out.startswith(f"{output}: 2 of 3 jobs; 1 failed (above); empty cells: input_bytes in 1, ")
    assert f"error: {source}: row 2, column gpus: '0'" in told.err
    assert pl.read_csv(output)["input_bytes"].null_count() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "o.xlsx"], "jobs are written as .parquet or .csv"),
        (["--output", "o.csv", "--optimizer", "adm"], "did you mean 'adam'"),
        (["--output", "o.csv"], "none of 1 rows became a job; o.csv is not written"),
    ],
)
def test_options_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    source = manifest(tmp_path, "zoo:mlp,0,,")
    assert main(["fleet", "extract", "--manifest", source, *arguments]) == 2
    assert message in capsys.readouterr().err
