"""Budgets, baseline, ignores and levels, as a project's CI meets them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project.helpers_project import BOUND, CLEAR, HEAD, Folder

from graphcost.analysis import analyze
from graphcost.cli.check import vocabulary
from graphcost.diffing import METRICS, Snapshot, side_of
from graphcost.project.baseline import baseline_text, read_baseline, write_baseline
from graphcost.project.budgets import judge, parse_limits
from graphcost.project.checking import CheckOptions, CheckResult, check_project
from graphcost.project.config import read

MLP = '[[models]]\nsource = "zoo:mlp"\n'


def findings(out: str) -> list[tuple[str, str, str]]:
    return [(f["rule"], f["level"], f["where"]) for m in json.loads(out)["models"] for f in m["findings"]]


# zoo:mlp has 669 706 parameters and 1 337 344 FLOPs of products a sample.
@pytest.mark.parametrize(
    ("budgets", "code", "found"),
    [
        ('max-params = "669706"', 0, []),  # strictly over
        ('max-params = "669705"', 1, [("budget", "error", "max-params")]),
        ('max-params = {warn = "600k", fail = "1M"}', 0, [("budget", "warning", "max-params")]),
        ('max-step = "1ns"\nmax-memory = "1kB"\nmax-flops = "1M"', 1,
         [("budget", "error", "max-step"), ("budget", "error", "max-memory"), ("budget", "error", "max-flops")]),
        ('max-step = "1h"\nmax-memory = "40GB"\nmax-flops = "1T"', 0, []),
        ('max-step = "1ns"\n[levels]\nbudget = "warn"', 0, [("budget", "warning", "max-step")]),
        ('max-step = "1ns"\n[levels]\nbudget = "pass"', 0, [("budget", "note", "max-step")]),
        ('device = "p100-pcie-16"\nbatch = 4000000', 0, [("does-not-fit", "warning", "memory")]),
        ('device = "p100-pcie-16"\nbatch = 4000000\n[levels]\ndoes-not-fit = "fail"', 1,
         [("does-not-fit", "error", "memory")]),
    ],
)  # fmt: skip
def test_budgets(folder: Folder, budgets: str, code: int, found: list[Any]) -> None:
    folder.write("batch = 32\n" + budgets + "\n" + MLP if "batch" not in budgets else budgets + "\n" + MLP)
    got, out, err = folder.check("--format", "json", "--quiet")
    assert (got, findings(out)) == (code, found), err
    assert folder.check("--exit-zero")[0] == 0


def test_doubt_and_the_limit_of_communication(folder: Folder) -> None:
    folder.copy(BOUND, "model.onnx")
    text = HEAD + '{}\n[[models]]\nsource = "model.onnx"\n'
    for limit, code, level in (
        ('max-comm-share = "50%"', 1, "error"), ('max-comm-share = "92%"', 0, "warning"),
        ('max-comm-share = "92%"\non-doubt = "fail"', 1, "error"),
        ('max-comm-share = "92%"\non-doubt = "pass"', 0, "note"),
        ('max-comm-share = {fail = "99%"}', 0, None), ('max-comm-share = {warn = "90%", fail = "99%"}', 0, "warning"),
    ):  # fmt: skip
        folder.write(text.format(limit))
        got, out, err = folder.check("--format", "json", "--quiet")
        levels = [level for rule, level, _ in findings(out) if rule in ("communication-share", "budget")]
        assert (got, levels) == (code, [level] if level else []), (limit, err)


def test_a_baseline_is_written_kept_and_compared(folder: Folder) -> None:
    folder.write('gpus = 8\nbatch = 32\nmax-regression = "5%"\nmax-flops = "+10%"\nbaseline = "base.json"\n' + MLP)
    code, out, err = folder.check()
    assert code == 0 and "baseline base.json is not written yet, so growth is not judged" in err
    code, _, err = folder.check("--update-baseline")
    assert code == 0 and "base.json: written, 1 model" in err
    before = (folder.path / "base.json").read_text("utf-8")
    data = json.loads(before)
    assert data["schema_version"] == 1 and data["models"]["zoo:mlp"]["metrics"]["params"] == 669_706
    assert "base.json: up to date" in folder.check("--update-baseline")[2]
    assert (folder.path / "base.json").read_text("utf-8") == before
    assert folder.check() == (0, "1 model passes; nothing changed against base.json\n", "")

    folder.write('gpus = 8\nbatch = 64\nmax-flops = "+10%"\nbaseline = "base.json"\n' + MLP)
    code, out, _ = folder.check("--format", "json")
    assert code == 1 and findings(out) == [("regression", "error", "max-flops")]
    assert json.loads(out)["models"][0]["settings"] == ["batch_per_gpu 32 -> 64"]
    code, _, err = folder.check("--update-baseline")
    assert code == 0 and "base.json: written" in err  # accepted
    assert folder.check()[0] == 0


def test_what_makes_a_baseline_stale_is_said(folder: Folder) -> None:
    folder.write("batch = 32\n" + MLP + '[[models]]\nsource = "zoo:mlp"\nname = "gone"\n')
    assert folder.check("--update-baseline", "--quiet")[0] == 0
    file = folder.path / "graphcost-baseline.json"
    folder.write("batch = 32\n" + MLP)
    code, out, err = folder.check("--format", "json")
    assert code == 0 and "holds models that the project does not name: gone" in err
    assert [m["change"] for m in json.loads(out)["models"]] == ["unchanged", "removed"]
    text = file.read_text("utf-8")
    file.write_text(re.sub(r'"graphcost_version": "[^"]+"', '"graphcost_version": "0.0.1"', text))
    assert "graphcost-baseline.json was written by graphcost 0.0.1" in folder.check()[2]
    file.write_text(re.sub(r'"constants": "[^"]+"', '"constants": "0"', text))
    assert "was written with other engine constants" in folder.check()[2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schema_version": 0, "models": {}}', "baseline schema 0, this graphcost reads 1; write it anew with"),
        ('{"schema_version": 9, "graphcost_version": "7.0", "models": {}}', "it is of graphcost 7.0; install that"),
        ("{", "not a baseline, no JSON"),
        ("[]", "baseline schema None"),
        ('{"schema_version": 1, "models": {}}', "a damaged baseline (KeyError: 'graphcost_version')"),
        ('{"schema_version": 1, "graphcost_version": "", "constants": "", "models": {"a": {"metrics": {"ops": ""}}}}',
         "a damaged baseline (ValueError"),
    ],
)  # fmt: skip
def test_a_baseline_that_cannot_be_read(folder: Folder, text: str, says: str) -> None:
    folder.write(MLP)
    folder.write(text, "graphcost-baseline.json")
    code, out, err = folder.check()
    assert (code, out) == (3, "") and says in err and len(err.splitlines()) == 1
    code, _, err = folder.check("--update-baseline", "--quiet")
    assert code == 0 and folder.check()[0] == 0


def test_one_model_of_several_leaves_the_rest_of_the_baseline(folder: Folder) -> None:
    folder.write(MLP + '[[models]]\nsource = "zoo:mlp"\nname = "b"\nbatch = 8\n')
    folder.check("--update-baseline")
    before = read_baseline(folder.path / "graphcost-baseline.json").models
    folder.write(MLP + '[[models]]\nsource = "zoo:mlp"\nname = "b"\nbatch = 16\n')
    assert folder.check("b", "--update-baseline")[0] == 0
    after = read_baseline(folder.path / "graphcost-baseline.json").models
    assert after["zoo:mlp"] == before["zoo:mlp"] and after["b"] != before["b"]
    code, _, err = folder.check("zoo:mpl")
    assert code == 2 and "graphcost.toml has no model named 'zoo:mpl'; did you mean 'zoo:mlp'?" in err


values = st.floats(min_value=1e-9, max_value=1e6)


@given(value=values, noise=st.floats(min_value=-4e-6, max_value=4e-6))
def test_nothing_in_the_file_changes_without_a_change(tmp_path_factory: Any, value: float, noise: float) -> None:
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    metric = METRICS["step_s"]

    def snapshot(seconds: float) -> Snapshot:
        rounded = metric.of({"step": {"step_s": seconds}})
        assert rounded is not None
        return Snapshot({"step_s": rounded, "params": 3}, {"Conv": 1}, {"gpus": 8})

    write_baseline(path, {"m": snapshot(value)}, None)
    assert write_baseline(path, {"m": snapshot(value * (1 + noise))}, read_baseline(path)) is False
    assert write_baseline(path, {"m": snapshot(value * 1.01)}, read_baseline(path)) is True


@given(names=st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5, unique=True))
def test_a_baseline_is_sorted_whatever_the_order(names: list[str]) -> None:
    models = {name: Snapshot({"params": len(name)}, {}, {}) for name in names}
    assert baseline_text(models) == baseline_text(dict(reversed(models.items())))
    assert list(json.loads(baseline_text(models))["models"]) == sorted(names)


@given(before=values, now=values, growth=st.floats(min_value=0, max_value=3))
def test_growth_is_judged_strictly(before: float, now: float, growth: float) -> None:
    result = analyze("zoo:mlp", batch=4) if not _RESULT else _RESULT[0]
    _RESULT[:] = [result]
    (budget,) = parse_limits("max-regression", f"{growth * 100}%")
    metric = METRICS["step_s"]
    found = judge(budget, Snapshot({"step_s": now}, {}, {}), Snapshot({"step_s": before}, {}, {}), result)
    assert (found is not None) == (metric.differs(before, now) and now > before * (1 + budget.limit))
    assert judge(budget, Snapshot({"step_s": now}, {}, {}), None, result) is None


_RESULT: list[Any] = []

IGNORE = (
    'max-step = "1ns"\n[[ignore]]\nrule = "budget"\nwhere = "max-*"\nreason = "known"\nexpires = 2030-06-01\n' + MLP
)


def checked(folder: Folder, text: str, today: date) -> CheckResult:
    file = folder.write(text)
    known = vocabulary()
    return check_project(read(file, known), known, CheckOptions(today=today))


def test_an_ignore_holds_to_the_end_of_its_last_day(folder: Folder) -> None:
    last = checked(folder, IGNORE, date(2030, 6, 1))
    assert (last.exit_code, last.models[0].status, last.models[0].findings[0].ignored) == (0, "pass", "known")
    late = checked(folder, IGNORE, date(2030, 6, 2))
    assert late.exit_code == 1 and late.models[0].findings[0].ignored is None
    assert late.notes == (
        "graphcost.toml:2: the ignore of budget (known) expired on 2030-06-01; its findings count again",
    )
    unused = checked(folder, IGNORE.replace('"1ns"', '"1h"'), date(2030, 6, 1))
    assert unused.exit_code == 0 and "matches no finding; remove it" in unused.notes[0]
    other = checked(folder, IGNORE.replace('where = "max-*"', 'model = "bert*"'), date(2030, 6, 1))
    assert other.exit_code == 1


def test_a_model_that_cannot_be_analysed_keeps_none_of_the_others(folder: Folder) -> None:
    folder.write(MLP + '[[models]]\nsource = "gone.onnx"\n')
    code, out, _ = folder.check("--format", "json")
    data = json.loads(out)
    assert code == 3 and [m["status"] for m in data["models"]] == ["pass", "error"]
    assert "gone.onnx: no such file" in data["models"][1]["error"]
    code, out, _ = folder.check("--update-baseline")
    assert code == 3 and set(read_baseline(folder.path / "graphcost-baseline.json").models) == {"zoo:mlp"}


def test_patterns_and_folders_are_their_files(folder: Folder) -> None:
    (folder.path / "export").mkdir()
    for name in ("b", "a"):
        folder.copy(CLEAR, f"export/{name}.onnx")
    for source in ("export/*.onnx", "export"):
        folder.write(f'batch = 4\n[[models]]\nsource = "{source}"\n')
        _, out, _ = folder.check("--format", "json", "--workers", "2")
        assert [m["name"] for m in json.loads(out)["models"]] == ["export/a.onnx", "export/b.onnx"]


def test_paths_start_at_the_configuration(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.copy(CLEAR, "model.onnx")
    folder.write('[[models]]\nsource = "model.onnx"\nbatch = 4\n')
    (folder.path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder.path / "deep" / "er")
    code, out, err = folder.check("--format", "json", "--output", "here.md")
    assert code == 0 and json.loads(out)["config"] == "../../graphcost.toml", err
    assert (folder.path / "deep" / "er" / "here.md").is_file()


def test_coverage_can_be_required(folder: Folder) -> None:
    from onnx import TensorProto, helper

    node = helper.make_node("FancyOp", ["x"], ["y"], domain="acme.ai", name="fancy")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", "y")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.ai", 1)]
    model = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=opsets)
    (folder.path / "m.onnx").write_bytes(model.SerializeToString())
    folder.write('[[models]]\nsource = "m.onnx"\n')
    assert folder.check()[0] == 0
    folder.write('strict = true\n[[models]]\nsource = "m.onnx"\n')
    code, out, _ = folder.check("--format", "junit")
    assert code == 4 and "acme.ai.FancyOp" in out and "<error" in out


def test_the_same_from_one_process_and_from_two(folder: Folder) -> None:
    folder.copy(CLEAR, "a.onnx")
    folder.write(MLP + '[[models]]\nsource = "a.onnx"\n[[models]]\nsource = "zoo:resnet18"\n')
    alone = folder.check("--workers", "1", "--format", "json", "--quiet")
    assert alone == folder.check("--workers", "2", "--format", "json", "--quiet") and alone[0] == 0


def test_outputs_that_cannot_be_written_lose_nothing(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(MLP)
    code, out, err = folder.check("--output", "no/such/x.json")
    assert (code, out) == (2, "") and "no folder no/such" in err
    (folder.path / "taken.json").mkdir()
    code, out, err = folder.check("--output", "taken.json", "--output", "fine.md")
    assert code == 2 and "--output taken.json: cannot be written (Is a directory)" in err
    assert "zoo:mlp" in out and (folder.path / "fine.md").is_file()
    assert folder.check("--output", "x.yaml")[0] == 2 and folder.check("--format", "yaml")[0] == 2


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser writes anywhere")
def test_a_read_only_folder_is_one_line(folder: Folder) -> None:
    folder.write(MLP)
    folder.path.chmod(0o555)
    try:
        code, out, err = folder.check("--output", "x.md")
        assert code == 2 and "cannot be written (Permission denied)" in err and "zoo:mlp" in out
        code, _, err = folder.check("--update-baseline")
        assert code == 3 and "the baseline cannot be written" in err
    finally:
        folder.path.chmod(0o755)


def test_a_baseline_that_cannot_be_written_is_one_line(folder: Folder) -> None:
    folder.write('baseline = "no/such/b.json"\n' + MLP)
    code, _, err = folder.check("--update-baseline")
    assert code == 3 and "no/such/b.json: the baseline cannot be written (No such file or directory)" in err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently on Windows")
def test_a_closed_pipe_is_no_error(folder: Folder) -> None:
    folder.write(MLP + '[[models]]\nsource = "zoo:resnet18"\n')
    command = f'"{sys.executable}" -m graphcost check --workers 2 --format json --quiet | head -c 10'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


def on_a_terminal(environment: dict[str, str], *options: str) -> tuple[int, bytes]:
    """Exit code and all that is shown."""
    parent, child = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "graphcost", "check", *options], env={**os.environ, **environment},
        stdout=child, stderr=child, check=False,
    )  # fmt: skip
    os.close(child)
    seen = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(parent)
    return done.returncode, seen


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1", "TERM": "xterm-256color"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(folder: Folder, environment: dict[str, str]) -> None:
    folder.write('max-step = "1ns"\n' + MLP)
    code, seen = on_a_terminal(environment)
    assert code == 1 and b"zoo:mlp" in seen
    assert not re.search(rb"\x1b\[[0-9;]*3[0-9][0-9;]*m", seen)


def test_progress_is_drawn_on_a_terminal_only(folder: Folder) -> None:
    folder.write("batch = 4\n" + MLP)
    code, out, err = folder.check()
    assert (code, err) == (0, "") and "\x1b" not in out
    code, seen = on_a_terminal({"TERM": "xterm-256color"})
    assert code == 0 and b"models" in seen and b"1/1" in seen
    code, seen = on_a_terminal({"TERM": "xterm-256color"}, "--quiet")
    assert code == 0 and b"1/1" not in seen


def test_snapshots_of_an_analysis_and_of_its_json_agree() -> None:
    result = analyze("zoo:mlp", batch=4)
    assert side_of(result).snapshot.metrics["params"] == result.graph.params
    assert set(side_of(result).snapshot.metrics) == set(METRICS)
    assert side_of(replace(result, ops=())).snapshot.operators == {}


def test_an_export_for_inference_says_what_is_assumed(folder: Folder) -> None:
    folder.copy(CLEAR, "model.onnx")  # fixed at batch 1
    folder.write('[[models]]\nsource = "model.onnx"\n')
    code, out, _ = folder.check("--format", "markdown")
    assert code == 0 and Path("model.onnx").exists()
    code, out, _ = folder.check()
    assert "model.onnx: note: inference-graph: the file fixes the batch at 1" in out
