"""The GitHub Action: its syntax by GitHub's schema, and its steps run in the clone of a pull request."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import jsonschema
import pytest
from helpers import RESNET50, reachable
from integrations.action_runner import Runner, github_api
from project.helpers_project import BOUND, CLEAR, HEAD, Folder
from project.test_revisions import SARIF_SCHEMA

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
MODEL = '[[models]]\nsource = "model.onnx"\n'
NO_SETUP = ("Install graphcost",)
"""Left out where graphcost is on the path; the slow test below runs every step."""


def test_the_syntax_is_githubs() -> None:
    pytest.importorskip("check_jsonschema")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", str(ACTION)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.fixture
def author(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Who opens the pull request: a project whose main branch passes, pushed to a bare repository."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, module in (("graphcost", "-m graphcost"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', "utf-8")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    place = tmp_path / "author"
    place.mkdir()
    found = Folder(place, capsys)
    found.git("init", "-q", "-b", "main")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "server")], check=True)
    found.git("remote", "add", "origin", f"file://{tmp_path / 'server'}")
    found.write(HEAD + MODEL)
    found.copy(CLEAR, "model.onnx")
    found.commit("a model that computes")
    found.git("push", "-q", "origin", "main")
    found.git("checkout", "-q", "-b", "feature")
    return found


def pull_request(author: Folder, api: str, *, depth: int = 1) -> Runner:
    """What actions/checkout leaves: the merge commit of the pull request, by default without history."""
    tmp_path = author.path.parent
    author.git("checkout", "-q", "-B", "merged", "main")
    author.git("merge", "-q", "--no-ff", "-m", "merge", "feature")
    author.git("push", "-q", "-f", "origin", "merged:refs/pull/7/merge")
    author.git("checkout", "-q", "feature")
    workspace = tmp_path / f"workspace-{len(list(tmp_path.iterdir()))}"
    workspace.mkdir()
    clone = Folder(workspace, author.capsys)
    clone.git("init", "-q")
    clone.git("remote", "add", "origin", f"file://{tmp_path / 'server'}")
    limit = [f"--depth={depth}"] if depth else []
    clone.git("fetch", "-q", "--no-tags", *limit, "origin", "+refs/pull/7/merge:refs/remotes/pull/7/merge")
    clone.git("checkout", "-q", "--detach", "refs/remotes/pull/7/merge")
    temporary = tmp_path / f"{workspace.name}-temp"
    temporary.mkdir()
    context = {
        "action_path": str(ROOT), "base_ref": "main", "repository": "owner/project", "token": "secret",
        "event.pull_request.number": "7",
    }  # fmt: skip
    return Runner(ACTION, workspace, temporary, context, {"GITHUB_API_URL": api})


def test_a_pull_request_becomes_bound_and_is_fixed(author: Folder) -> None:
    author.copy(BOUND, "model.onnx")
    author.commit("wide layers")
    with github_api() as (api, comments):
        comments += [{"id": number, "body": "a remark"} for number in range(130)]  # more than one page
        job = pull_request(author, api)
        code = job.run({"upload-sarif": "true"}, without=NO_SETUP)
        said = job.output["Check"]
        assert code == 1 and job.outputs["exit-code"] == "1", job.output
        assert "::error file=model.onnx,title=graphcost communication-share%3A model.onnx::communication is" in said
        assert "1 of 1 models fail; 1 changed against origin/main" in job.summary
        assert comments[-1]["body"] == job.summary and len(comments) == 131
        assert [name for name, _ in job.used] == ["actions/setup-python@v5", "github/codeql-action/upload-sarif@v3"]
        sarif = json.loads((job.workspace / job.used[1][1]["sarif_file"]).read_text("utf-8"))
        jsonschema.Draft4Validator(SARIF_SCHEMA).validate(sarif)
        assert json.loads(Path(job.outputs["json"]).read_text("utf-8"))["models"][0]["status"] == "fail"

        author.copy(CLEAR, "model.onnx")
        author.commit("narrow again")
        fixed = pull_request(author, api)
        assert fixed.run({}, without=NO_SETUP) == 0, fixed.output
        assert len(comments) == 131 and comments[-1]["body"] == fixed.summary
        assert "1 model passes; nothing changed against origin/main" in fixed.summary


def test_where_nothing_changed_no_comment_is_made(author: Folder) -> None:
    author.write("words\n", "notes.txt")
    author.commit("words")
    with github_api() as (api, comments):
        job = pull_request(author, api, depth=0)
        assert job.run({"sarif": "", "python-version": ""}, without=NO_SETUP) == 0, job.output
        assert comments == [] and "nothing changed: no comment" in job.output["Comment"]
        assert not list(job.workspace.glob("*.sarif")) and job.used == []


def test_a_token_that_may_not_comment_is_a_warning(author: Folder) -> None:
    author.copy(BOUND, "model.onnx")
    author.commit("wide layers")
    with github_api(may_write=False) as (api, comments):
        job = pull_request(author, api)
        assert job.run({}, without=NO_SETUP) == 1
        assert comments == [] and "::warning::graphcost could not comment" in job.output["Comment"]


def test_a_push_checks_without_a_base(author: Folder) -> None:
    job = pull_request(author, "http://127.0.0.1:9")
    job.github = {"action_path": str(ROOT), "repository": "owner/project", "token": "secret"}
    assert job.run({"config": "graphcost.toml"}, without=NO_SETUP) == 0, job.output
    assert set(job.output) == {"Check", "Verdict"} and "1 model passes" in job.summary


def test_errors_are_the_jobs(author: Folder) -> None:
    job = pull_request(author, "http://127.0.0.1:9")
    code = job.run({"config": "nothing.toml", "upload-sarif": "true"}, without=NO_SETUP)
    assert code in (2, 3) and "graphcost: error: " in job.output["Check"], job.output
    assert job.summary == "" and [name for name, _ in job.used] == ["actions/setup-python@v5"]


def test_text_of_a_pull_request_is_never_a_script(author: Folder) -> None:
    job = pull_request(author, "http://127.0.0.1:9")
    code = job.run({"config": "$(touch owned); `touch owned`'\""}, without=NO_SETUP)
    assert code in (2, 3) and not list(job.workspace.rglob("owned"))


@pytest.mark.slow
def test_every_step_with_an_installation(author: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that installs too, from a copy of this tree into an environment of its own."""
    tmp_path = author.path.parent
    if not reachable():
        pytest.skip("no package index can be reached, from which the action would install")
    venv.create(tmp_path / "venv", with_pip=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PYTHONPATH")
    copy = tmp_path / "action"
    ignored = shutil.ignore_patterns(
        ".git", "tests", "benchmarks", "*.egg-info", "build", "dist", ".venv", ".*_cache"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    author.copy(RESNET50, "model.onnx")
    author.commit("another model")
    with github_api() as (api, comments):
        job = pull_request(author, api)
        job.github = {**job.github, "action_path": str(copy)}
        code = job.run({"extras": "fleet"})
        assert (tmp_path / "venv" / "bin" / "graphcost").is_file(), job.output
        assert code == int(job.outputs["exit-code"]) <= 1 and len(comments) == 1, job.output
