"""The pre-commit hooks, run by pre-commit itself in a scratch repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import reachable
from project.helpers_project import BOUND, CLEAR, HEAD, Folder

pytest.importorskip("pre_commit", reason="pre-commit is not installed")

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
MODEL = '[[models]]\nsource = "model.onnx"\n'


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A committed project with a model that passes; `graphcost` on the path is this one."""
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "graphcost").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphcost "$@"\n', "utf-8")
    (commands / "graphcost").chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    found = Folder(place, capsys)
    found.git("init", "-q", "-b", "main")
    found.git("config", "user.name", "a")
    found.git("config", "user.email", "a@example.org")
    found.write(HEAD + MODEL)
    found.copy(CLEAR, "model.onnx")
    found.commit("a model that computes")
    return found


@pytest.fixture
def hooks(tmp_path: Path, folder: Folder) -> Path:
    """A repository that holds the hooks' manifest, as pre-commit clones one."""
    place = tmp_path / "hooks"
    place.mkdir()
    shutil.copy(HOOKS, place)
    repository = Folder(place, folder.capsys)
    repository.git("init", "-q")
    repository.commit("hooks")
    return place


def pre_commit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def install(folder: Folder, hooks: Path, *arguments: str) -> None:
    revision = Folder(hooks, folder.capsys).git("rev-parse", "HEAD")
    folder.write(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: graphcost-check-system\n"
        f"    args: [{', '.join(arguments)}]\n",
        ".pre-commit-config.yaml",
    )
    done = pre_commit("install")
    assert done.returncode == 0, done.stdout + done.stderr


def commit(folder: Folder) -> tuple[int, str]:
    """`git commit` as its users run it, hooks included."""
    folder.git("add", "-A")
    done = subprocess.run(["git", "commit", "-m", "work"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_manifest_is_valid() -> None:
    done = pre_commit("validate-manifest", HOOKS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_commit_with_a_bound_model_is_stopped_and_its_fix_passes(folder: Folder, hooks: Path) -> None:
    install(folder, hooks)
    folder.copy(BOUND, "model.onnx")
    code, said = commit(folder)
    assert code == 1 and "graphcost check" in said and "exit code: 1" in said, said
    assert "model.onnx: error: communication-share: communication is" in said
    assert folder.git("log", "--oneline").count("\n") == 0, "the commit was made"
    folder.copy(CLEAR, "model.onnx")
    folder.write(HEAD + "# narrow layers\n" + MODEL)
    code, said = commit(folder)
    assert code == 0 and "Passed" in said, said


def test_files_that_matter_to_nothing_run_no_check(folder: Folder, hooks: Path) -> None:
    install(folder, hooks)
    assert commit(folder)[0] == 0
    folder.write("words\n", "notes.txt")
    code, said = commit(folder)
    assert code == 0 and "(no files to check)Skipped" in said, said


def test_against_a_branch_in_a_git_hook(folder: Folder, hooks: Path) -> None:
    """git tells a hook its index by environment variables; the worktree of the other revision must not take that."""
    folder.git("checkout", "-q", "-b", "feature")
    install(folder, hooks, "--against", "main")
    folder.copy(BOUND, "model.onnx")
    code, said = commit(folder)
    assert code == 1 and "1 of 1 models fail; 1 changed against main" in said, said
    assert folder.git("diff", "--cached", "--name-only").split() == [".pre-commit-config.yaml", "model.onnx"]
    assert len(folder.git("worktree", "list").splitlines()) == 1


def test_against_a_branch_in_the_hook_of_a_linked_worktree(folder: Folder, hooks: Path) -> None:
    install(folder, hooks, "--against", "main")
    config = (folder.path / ".pre-commit-config.yaml").read_text("utf-8")
    linked = folder.path.parent / "linked"
    folder.git("worktree", "add", "-q", "-b", "feature", str(linked))
    there = Folder(linked, folder.capsys)
    there.write(config, ".pre-commit-config.yaml")
    there.copy(BOUND, "model.onnx")
    there.git("add", "-A")
    done = subprocess.run(["git", "commit", "-m", "work"], capture_output=True, text=True, check=False, cwd=linked)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "1 of 1 models fail; 1 changed against main" in said, said


@pytest.mark.slow
def test_the_hook_with_an_environment_of_its_own(folder: Folder) -> None:
    """As users get it: pre-commit clones this repository and installs it with its dependencies."""
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        pytest.skip("the tests are in no git checkout, which pre-commit could clone")
    folder.copy(BOUND, "model.onnx")
    folder.git("add", "-A")
    done = pre_commit("try-repo", ROOT, "graphcost-check", "--all-files")
    said = done.stdout + done.stderr
    if "pip" in said and "An unexpected error" in said and not reachable():
        pytest.skip("no package index can be reached, from which pre-commit would install")
    assert done.returncode == 1 and "model.onnx: error: communication-share" in said, said
    folder.copy(CLEAR, "model.onnx")
    folder.git("add", "-A")
    done = pre_commit("try-repo", ROOT, "graphcost-check", "--all-files")
    assert done.returncode == 0 and "Passed" in done.stdout, done.stdout + done.stderr
