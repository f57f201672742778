"""A pull request in a scratch repository: bound by communication, then fixed; and revisions that are not there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from project.helpers_project import BOUND, CLEAR, HEAD, Folder

SARIF_SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0.schema.json").read_text("utf-8"))
MODEL = '[[models]]\nsource = "model.onnx"\n'


@pytest.fixture
def repo(folder: Folder) -> Folder:
    folder.git("init", "-q", "-b", "main")
    folder.write(HEAD + MODEL)
    folder.copy(CLEAR, "model.onnx")
    folder.commit("a model that computes")
    return folder


def worktrees(repo: Folder) -> int:
    return len(repo.git("worktree", "list").splitlines())


def test_a_model_becomes_communication_bound_and_is_fixed(repo: Folder) -> None:
    base = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "-b", "feature")
    repo.copy(BOUND, "model.onnx")
    repo.commit("wide layers")
    files = ["--output", "comment.md", "--output", "results.sarif"]
    code, out, err = repo.check("--against", "main", *files, "--format", "json")
    assert code == 1, err
    data = json.loads(out)
    (model,) = data["models"]
    assert data["base"] == {"kind": "revision", "name": "main", "commit": base}
    assert (model["status"], model["change"]) == ("fail", "changed")
    assert {delta["metric"] for delta in model["deltas"]} >= {"step_s", "comm_share", "params"}
    assert model["counts"]["Conv"] == [26, 5]  # SqueezeNet 1.1's and AlexNet's convolutions

    comment = (repo.path / "comment.md").read_text("utf-8")
    assert comment.splitlines()[0] == "<!-- graphcost check: graphcost.toml -->"
    assert f"1 of 1 models fail; 1 changed against main ({base[:9]})" in comment
    (share,) = re.findall(r"^\| `model.onnx` \| FAIL \| (9\d\.\d %) \(\+\d\d\.\d points\) \|", comment, re.MULTILINE)
    assert f"- `model.onnx` **communication-share**: communication is {share}" in comment
    assert "<details><summary>model.onnx: what changed</summary>" in comment

    sarif = json.loads((repo.path / "results.sarif").read_text("utf-8"))
    jsonschema.Draft4Validator(SARIF_SCHEMA).validate(sarif)
    (result,) = [one for one in sarif["runs"][0]["results"] if one["level"] == "error"]
    assert result["ruleId"] == "communication-share"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "model.onnx"
    assert worktrees(repo) == 1

    (repo.path / "results.sarif").unlink()
    repo.copy(CLEAR, "model.onnx")
    repo.commit("narrow again")
    code, out, err = repo.check("--against", "main", "--output", "comment.md", "--output", "results.sarif")
    assert (code, out) == (0, "")
    assert (repo.path / "comment.md").read_text("utf-8").splitlines() == [
        "<!-- graphcost check: graphcost.toml -->",
        f"### graphcost: 1 model passes; nothing changed against main ({base[:9]})",
    ]
    sarif = json.loads((repo.path / "results.sarif").read_text("utf-8"))
    assert [one for one in sarif["runs"][0]["results"] if one["level"] != "note"] == []
    code, out, _ = repo.check("--against", "main")
    assert (code, out) == (0, f"1 model passes; nothing changed against main ({base[:9]})\n")


def test_the_base_is_where_the_branch_began(repo: Folder) -> None:
    began = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "-b", "feature")
    repo.write("note", "note.txt")
    repo.commit("nothing of the model's")
    repo.git("checkout", "-q", "main")
    repo.copy(BOUND, "model.onnx")
    repo.commit("somebody else's work")
    repo.git("checkout", "-q", "feature")
    code, out, _ = repo.check("--against", "main", "--format", "json")
    data = json.loads(out)
    assert code == 0 and data["base"]["commit"] == began and data["models"][0]["change"] == "unchanged"


def test_models_come_and_go_and_settings_change(repo: Folder) -> None:
    repo.write(HEAD.replace("batch = 64", "batch = 128") + MODEL + '[[models]]\nsource = "zoo:mlp"\nname = "small"\n')
    repo.commit("another model, a larger batch")
    repo.write(HEAD.replace("batch = 64", "batch = 128") + MODEL + '[[models]]\nsource = "new.onnx"\n')
    repo.copy(CLEAR, "new.onnx")
    code, out, err = repo.check("--against", "HEAD", "--format", "json")
    assert code == 0, err
    assert {m["name"]: m["change"] for m in json.loads(out)["models"]} == {
        "model.onnx": "unchanged", "new.onnx": "added", "small": "removed",
    }  # fmt: skip
    code, out, _ = repo.check("--against", "HEAD~1", "--format", "markdown")
    assert code == 0 and "settings: batch_per_gpu 64 -> 128" in out
    assert "| `new.onnx` | pass, added |" in out and "1 changed, 1 added against HEAD~1" in out


def test_growth_against_a_revision(repo: Folder) -> None:
    repo.write(HEAD.replace("batch = 64", "batch = 80") + 'max-regression = "5%"\nmax-params = "+0%"\n' + MODEL)
    code, out, _ = repo.check("--against", "HEAD", "--format", "json")
    (finding,) = [one for one in json.loads(out)["models"][0]["findings"] if one["level"] == "error"]
    assert code == 1
    assert (finding["rule"], finding["where"]) == ("regression", "max-regression")
    assert "has grown by more than 5 %" in finding["message"]


def test_a_revision_with_a_broken_configuration_is_read_with_todays(repo: Folder) -> None:
    repo.write("gpsu = 3\n")
    repo.commit("broken")
    repo.write(HEAD + MODEL)
    code, out, err = repo.check("--against", "HEAD", "--format", "json")
    assert code == 0 and json.loads(out)["models"][0]["change"] == "unchanged"
    assert "the configuration does not hold (graphcost.toml:1: no key named 'gpsu'" in err


def test_python_models_are_those_of_their_revision(repo: Folder) -> None:
    pytest.importorskip("torch")
    repo.write("WIDTH = 64\n", "net/width.py")
    repo.write(
        "import torch\nfrom width import WIDTH\n\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.a = torch.nn.Linear(32, WIDTH)\n"
        "        self.b = torch.nn.Linear(WIDTH, 8)\n\n    def forward(self, x):\n        y = self.a(x)\n"
        "        return self.b(torch.relu(y))\n\n\ndef build():\n    return Net(), (torch.zeros(16, 32),)\n",
        "net/train.py",
    )
    repo.write('gpus = 8\nmax-comm-share = "1%"\n[[models]]\nsource = "net/train.py:build"\n')
    repo.commit("a network of torch")
    repo.write("WIDTH = 128\n", "net/width.py")
    code, out, err = repo.check("--against", "HEAD", "--format", "json", "--output", "results.sarif")
    assert code == 1, err
    (model,) = json.loads(out)["models"]
    params = {d["metric"]: (d["base"], d["head"]) for d in model["deltas"]}["params"]
    assert params == (32 * 64 + 64 + 64 * 8 + 8, 32 * 128 + 128 + 128 * 8 + 8)
    sarif = json.loads((repo.path / "results.sarif").read_text("utf-8"))
    jsonschema.Draft4Validator(SARIF_SCHEMA).validate(sarif)
    place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "net/train.py"
    assert place["region"]["startLine"] == 12  # y = self.a(x): the layer with most weights


def test_a_revision_that_is_not_there(repo: Folder) -> None:
    code, _, err = repo.check("--against", "origin/main")
    assert code == 2 and "--against origin/main: no such revision; git branch -a lists branches" in err
    code, _, err = repo.check("--against", "--upload-pack=x")
    assert code == 2 and "no such revision" in err
    assert repo.check("--against", "main", "--update-baseline")[0] == 2
    assert worktrees(repo) == 1


def test_no_repository_and_no_history(folder: Folder) -> None:
    folder.write('[[models]]\nsource = "zoo:mlp"\n')
    code, _, err = folder.check("--against", "main")
    assert code == 2 and "is in no git repository" in err and len(err.splitlines()) == 1
    folder.git("init", "-q", "-b", "main")
    assert "no such revision" in folder.check("--against", "main")[2]
    folder.commit("one")
    folder.git("checkout", "-q", "--orphan", "other")
    folder.commit("two")
    code, _, err = folder.check("--against", "main")
    assert code == 2 and "no common ancestor with HEAD; it shares no history" in err


def test_a_shallow_clone_says_how_to_deepen_it(repo: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.git("checkout", "-q", "-b", "feature")
    repo.write("x", "x.txt")
    repo.commit("more")
    clone = repo.path / "clone"
    repo.git("clone", "-q", "--depth", "1", "--branch", "feature", f"file://{repo.path}", str(clone))
    monkeypatch.chdir(clone)
    for ref in ("origin/main", "HEAD~1"):
        code, _, err = repo.check("--against", ref)
        assert code == 2 and "the clone is shallow" in err and "fetch-depth: 0" in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_worktree_goes_when_the_check_is_stopped(repo: Folder, number: int) -> None:
    repo.write("import time\ntime.sleep(60)\n", "slow.py")
    repo.write('[[models]]\nsource = "slow.py:build"\n')
    repo.commit("a model that takes its time")
    repo.write('[[models]]\nsource = "zoo:mlp"\n')  # quick here, slow there
    environment = {**os.environ, "TMPDIR": str(repo.path / "scratch")}
    (repo.path / "scratch").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "graphcost", "check", "--against", "HEAD"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while worktrees(repo) == 1 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert worktrees(repo) == 2
    time.sleep(1.0)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert worktrees(repo) == 1 and not list((repo.path / "scratch").glob("graphcost-*"))
