"""The command line as its users and CI jobs meet it: exit codes, streams, one clear line."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import LIGHT, RESNET50, VGG19

from graphcost.cli import main as cli_main
from graphcost.cli.main import main
from graphcost.device_db import load_cluster

SLOW_NETWORK = ["--gpus", "16", "--cluster", "aws-p3.16xlarge", "--batch", "32"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def one_line(err: str) -> str:
    """The only error line; a traceback or a second error fails."""
    assert "Traceback" not in err
    errors = [line for line in err.splitlines() if line.startswith("graphcost: error: ")]
    assert len(errors) == 1, err
    return errors[0]


@pytest.fixture
def bad_file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(request.param)
    return path


@pytest.mark.parametrize(
    ("bad_file", "says"),
    [
        (b"", "empty"),
        (RESNET50.read_bytes()[:40_000], "truncated"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "LFS"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "PNG"),
        (b"PK\x03\x04" + bytes(64), "zip"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"hello, world\n" * 40, "ONNX"),
        (bytes(range(256)) * 64, "ONNX"),
    ],
    indirect=["bad_file"],
    ids=["empty", "truncated", "lfs", "png", "zip", "html", "text", "bytes"],
)
def test_unreadable_files_exit_3_and_name_the_file(
    capsys: pytest.CaptureFixture[str], bad_file: Path, says: str
) -> None:
    code, out, err = run(capsys, "analyze", bad_file)
    assert (code, out) == (3, "")
    assert str(bad_file) in one_line(err) and says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "h100-smx"], "no device named 'h100-smx'; did you mean 'h100-sxm'?"),
        (["--cluster", "dgx-a10"], "no cluster named 'dgx-a10'; did you mean 'dgx-a100'?"),
        (["--arch", "alreduce", "--gpus", "8"], "no architecture named 'alreduce'; did you mean 'allreduce'?"),
        (["--precision", "fp23"], "no precision named 'fp23'; did you mean 'fp32'?"),
        (["--optimizer", "adma"], "no optimizer named 'adma'; did you mean 'adam'?"),
        (["--gpus", "0"], "--gpus 0"),
        (["--gpus", "-8"], "--gpus -8"),
        (["--gpus", "many"], "--gpus"),
        (["--arch", "local", "--gpus", "16"], "one server"),
        (["--arch", "single", "--gpus", "2"], "one GPU"),
        (["--servers", "9", "--gpus", "8"], "--servers 9"),
        (["--ps", "2", "--gpus", "8"], "--ps goes with --arch ps"),
        (["--batch", "0"], "--batch 0"),
        (["--dim", "seq=4"], "no size of that name"),
        (["--dim", "seq"], "NAME=N"),
        (["--input-shape", "dta=1,3,224,224"], "no input of that name"),
        (["--input-shape", "gpu_0/data_0=1,3,224"], "3 sizes given"),
        (["--input-value", "nothing=3"], "no input or loop of that name"),
        (["--network", "25"], "25Gb/s"),
        (["--network-kind", "carrier-pigeon"], "carrier-pigeon"),
        (["--max-comm-share", "150%"], "between 0% and 100%"),
        (["--profile", "paper", "--overlap", "bucketed"], "buckets"),
        (["--profile", "paper", "--accumulate", "4"], "micro-batches"),
        (["--format", "pdf"], "pdf"),
        (["--gpsu", "8"], "--gpus"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_errors_exit_2_with_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    code, out, err = run(capsys, "analyze", RESNET50, *arguments)
    assert (code, out) == (2, "")
    assert says in one_line(err)


def test_a_missing_file_and_a_missing_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "analyze", tmp_path / "nothing.onnx")
    assert code == 3 and "no such file" in one_line(err)
    code, _, err = run(capsys, "analyse", RESNET50)
    assert code == 2 and "did you mean 'analyze'?" in one_line(err)
    code, _, err = run(capsys)
    assert code == 2 and "Commands:" in err


def test_a_flagged_model_exits_1_and_exit_zero_only_reports(capsys: pytest.CaptureFixture[str]) -> None:
    flagged = ["analyze", VGG19, *SLOW_NETWORK, "--quiet"]
    code, out, err = run(capsys, *flagged)
    assert code == 1 and "FLAGGED" in out and err == ""
    assert run(capsys, *flagged, "--exit-zero")[0] == 0
    assert run(capsys, *flagged, "--max-comm-share", "99%")[0] == 0


def test_doubt_warns_or_fails(capsys: pytest.CaptureFixture[str]) -> None:
    doubtful = ["analyze", VGG19, *SLOW_NETWORK, "--max-comm-share", "80%"]
    code, out, err = run(capsys, *doubtful)
    assert code == 0 and "TOO CLOSE" in out and "too close" in err
    assert run(capsys, *doubtful, "--on-doubt", "fail")[0] == 1


def test_several_models_are_all_reported_and_the_largest_code_wins(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"")
    code, out, err = run(capsys, "analyze", VGG19, bad, RESNET50, *SLOW_NETWORK, "--format", "json", "--quiet")
    assert code == 3
    assert [result["model"]["name"] for result in json.loads(out)["results"]] == ["light_vgg19", "light_resnet50"]
    assert "bad.onnx" in one_line(err)


def test_workers_give_the_same_in_the_same_order(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"")
    command = ["analyze", VGG19, bad, RESNET50, *SLOW_NETWORK, "--format", "json", "--quiet"]
    alone, together = run(capsys, *command), run(capsys, *command, "--workers", "2")
    assert alone == together and alone[0] == 3


def test_a_folder_is_every_model_in_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("b.onnx", "a.onnx"):
        (tmp_path / name).write_bytes(VGG19.read_bytes())
    code, out, _ = run(capsys, "count", tmp_path, "--format", "json")
    assert code == 0
    assert [result["model"]["name"] for result in json.loads(out)["results"]] == ["a", "b"]
    (tmp_path / "empty").mkdir()
    assert run(capsys, "count", tmp_path / "empty")[0] == 3


def test_json_keeps_stdout_clean_and_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "analyze", RESNET50, "--arch", "allreduce", "--gpus", "8", "--format", "json")
    data = json.loads(out)
    assert code == 0
    assert data["graph"]["macs"] == 4_089_184_256 and data["graph"]["params"] == 25_557_032
    step = data["step"]
    parts = ["input_s", "compute_s", "memory_s", "host_s", "exposed_comm_s"]
    assert sum(step[part] for part in parts) == pytest.approx(step["step_s"])
    assert step["comm_share"] == pytest.approx(step["exposed_comm_s"] / step["step_s"])
    assert (step["verdict"], step["flagged"]) == ("clear", False)
    assert "batch at 1" in err
    assert 0 < step["comm_share_at_batch_32"] < step["comm_share"]


def test_per_op_rows_add_up_to_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "analyze", RESNET50, "--gpus", "8", "--format", "json", "--per-op")
    data = json.loads(out)
    assert sum(op["matmul_flops"] for op in data["ops"]) == data["graph"]["matmul_flops"]
    assert sum(op["elementwise_flops"] for op in data["ops"]) == data["graph"]["elementwise_flops"]
    backward = sum(op["backward_flops"] for op in data["ops"])
    assert backward == data["training"]["backward_flops"]
    assert len({op["id"] for op in data["ops"]}) == data["graph"]["ops"]


@pytest.mark.parametrize("form", ["text", "json", "csv", "latex", "markdown"])
def test_count_formats(capsys: pytest.CaptureFixture[str], form: str) -> None:
    code, out, _ = run(capsys, "count", RESNET50, VGG19, "--format", form)
    assert code == 0
    assert ("4089184256" in out) if form in ("json", "csv") else ("4.09 GMAC" in out)


def test_output_files_choose_their_format(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.md", "r.html", "r.csv", "r.txt")]
    options = [text for file in files for text in ("--output", str(file))]
    assert run(capsys, "analyze", RESNET50, "--quiet", *options)[0] == 0
    assert json.loads(files[0].read_text())["command"] == "analyze"
    assert files[1].read_text().startswith("| model") and "<table>" in files[2].read_text()
    assert files[3].read_text().startswith("model,arch") and "light_resnet50" in files[4].read_text()
    code, _, err = run(capsys, "analyze", RESNET50, "--quiet", "--output", "r.xyz")
    assert code == 2 and ".xyz" in one_line(err)


def test_compare_ranks_and_names_what_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "compare", VGG19, "--gpus", "8,16", "--cluster", "aws-p3.16xlarge", "--format", "json")
    data = json.loads(out)
    rates = [result["step"]["samples_per_s"] for result in data["results"]]
    assert code == 0 and rates == sorted(rates, reverse=True)
    held = {"local", "ps", "allreduce", "pearl", "zero1", "zero2", "zero3", "dataparallel"}
    archs = {result["placement"]["arch"] for result in data["results"]}
    assert {arch for arch in archs if "=" not in arch} == held
    meshes = [r for r in data["results"] if "=" in r["placement"]["arch"]]
    assert all(r["training"]["memory"]["fits"] for r in meshes)
    assert {gpus: sum(r["placement"]["gpus"] == gpus for r in meshes) for gpus in (8, 16)} == {8: 4, 16: 4}
    assert {(entry["arch"], entry["gpus"]) for entry in data["refused"]} == {
        (one, 16) for one in ("local", "pearl", "dataparallel")
    }


@pytest.mark.parametrize("width", [80, 100, 140])
def test_compare_cuts_no_memory_at_any_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    model = ("zoo:gpt2-xl", "--gpus", "8", "--batch", "4", "--quiet")
    _, out, _ = run(capsys, "compare", *model)
    head, names, *rest = out.splitlines()
    rows = rest[: rest.index("")]
    assert head.endswith("fastest first, what does not fit behind")
    assert names.split()[-2:] == ["memory", "fits"]
    assert all(row.split()[-1] in ("yes", "no") and row.split()[-2] in ("GB", "MB") for row in rows)
    assert "…" not in "".join(rows) and max(map(len, rows)) <= width
    fits = [row.split()[-1] for row in rows]
    assert fits == sorted(fits, reverse=True) and {"yes", "no"} == set(fits)  # those that fit come first
    _, table, _ = run(capsys, "compare", *model, "--format", "csv")
    found = {row["arch"]: row for row in csv.DictReader(table.splitlines())}
    assert found["zero3"]["fits"] == "True" and found["allreduce"]["fits"] == "False"
    assert float(found["zero3"]["bubble_s"]) == 0
    assert all(float(row["bubble_s"]) > 0 for arch, row in found.items() if "pp=" in arch and "pp=1," not in arch)


def test_a_saved_graph_is_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "graph.json"
    assert run(capsys, "graph", RESNET50, "--output", saved)[0] == 0
    _, first, _ = run(capsys, "analyze", RESNET50, "--gpus", "8", "--format", "json")
    _, again, _ = run(capsys, "analyze", saved, "--gpus", "8", "--format", "json")
    one, two = json.loads(first), json.loads(again)
    for part in ("graph", "training", "placement", "communication"):
        assert one[part] == two[part]
    saved.write_text('{"format": "graphcost-graph"}')
    assert run(capsys, "analyze", saved)[0] == 3
    saved.write_text("[1")
    assert run(capsys, "analyze", saved)[0] == 3


@pytest.mark.parametrize("form", ["graphml", "dot"])
def test_graph_exports(capsys: pytest.CaptureFixture[str], form: str) -> None:
    code, out, _ = run(capsys, "graph", RESNET50, "--format", form)
    assert code == 0 and out.count("Conv-") >= 53


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert "h100-sxm" in run(capsys, "devices")[1]
    assert "2.04 TB/s" in run(capsys, "devices", "a100-sxm-80")[1]
    assert json.loads(run(capsys, "devices", "dgx-a100", "--format", "json")[1])["cluster"]["id"] == "dgx-a100"
    assert run(capsys, "devices", "h100-smx")[0] == 2
    assert "MatMul" in run(capsys, "ops")[1]
    rows = json.loads(run(capsys, "ops", RESNET50, "--format", "json")[1])["ops"]
    assert {row["operator"]: row["count"] for row in rows}["Conv"] == 53
    assert "zoo:resnet50" in run(capsys, "zoo")[1]
    assert run(capsys, "zoo", "resnet51")[0] == 2


def test_strict_wants_a_rule_for_every_operator(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    node = helper.make_node("FancyOp", ["x"], ["y"], domain="acme.ai", name="fancy")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.ai", 1)]
    path = tmp_path / "custom.onnx"
    path.write_bytes(
        helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets).SerializeToString()
    )
    code, out, err = run(capsys, "analyze", path)
    assert code == 0 and "acme.ai.FancyOp x1" in out and "acme.ai.FancyOp has no rule" in err
    code, _, err = run(capsys, "analyze", path, "--strict")
    assert code == 4 and "acme.ai.FancyOp" in err
    assert run(capsys, "analyze", path, "--min-coverage", "50%")[0] == 4
    assert run(capsys, "count", path, "--strict")[0] == 4


def test_an_internal_error_is_70_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("graphcost.cli.analyze.analyze_all", broken)
    code, _, err = run(capsys, "analyze", RESNET50)
    assert code == 70 and "internal error: RuntimeError: out of cheese" in one_line(err) and "report" in err
    code = cli_main.main(["analyze", str(RESNET50), "--debug"])
    assert code == 70 and "Traceback" in capsys.readouterr().err


def test_a_users_own_cluster_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('device = "a100-sxm-80"\nserver = "dgx-a100"\nmax_servers = 2\nsource = "our rack"\n')
    code, out, _ = run(capsys, "analyze", RESNET50, "--gpus", "16", "--cluster", path, "--format", "json", "--quiet")
    assert code == 0 and json.loads(out)["placement"]["servers"] == 2
    code, _, err = run(capsys, "analyze", RESNET50, "--gpus", "32", "--cluster", path)
    assert code == 2 and "has 2" in one_line(err)
    path.write_text('device = "a100-sxm-80"\nservr = "dgx-a100"\n')
    code, _, err = run(capsys, "analyze", RESNET50, "--cluster", path)
    assert code == 3 and "did you mean 'server'" in one_line(err)


def test_overrides_reach_the_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    def share(*options: str) -> float:
        _, out, _ = run(
            capsys, "analyze", VGG19, *SLOW_NETWORK, "--format", "json", "--quiet", "--exit-zero", *options
        )
        return float(json.loads(out)["step"]["comm_share"])

    nominal = load_cluster("aws-p3.16xlarge").network.bytes_per_s * 8 / 1e9
    assert nominal == 25
    assert share("--network", "10Gb/s") >= share()
    assert share("--network", "100Gb/s", "--network-kind", "infiniband") < share()
    assert share("--device", "h100-sxm") > share()
    assert share("--profile", "paper") < share()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently on Windows")
def test_a_closed_pipe_is_no_error() -> None:
    command = f'"{sys.executable}" -m graphcost analyze "{RESNET50}" --per-op --quiet | head -c 10'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


def test_no_framework_is_imported_for_onnx() -> None:
    code = (
        "import sys, graphcost.cli.main as m;"
        f"m.main(['analyze', {str(RESNET50)!r}, '--gpus', '8', '--quiet']);"
        "heavy = {'torch', 'tensorflow', 'keras', 'jax', 'pandas', 'sympy', 'onnx_ir'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_graphcost_is_light() -> None:
    code = "import sys, graphcost; sys.exit(str({'onnx', 'numpy', 'networkx', 'torch'} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "", done.stderr


def test_output_is_the_same_from_run_to_run() -> None:
    seen = set()
    for seed in ("1", "2"):
        model = str(LIGHT / "light_densenet121.onnx")
        done = subprocess.run(
            [sys.executable, "-m", "graphcost", "analyze", model, "--per-op", "--quiet"],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        seen.add(done.stdout)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", ["device", "cluster"])
def test_devices_shows_a_file_as_what_it_is(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = {"device": "a100-sxm-80", "cluster": "dgx-a100"}[kind]
    file = Path(__file__).parents[1] / "device_db" / f"{kind}s" / f"{name}.toml"
    code, out, _ = run(capsys, "devices", str(file), "--format", "json")
    assert code == 0 and json.loads(out)[kind]["id"] == name
