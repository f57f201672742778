"""README and docs: every command runs, every capture is what it prints, every link leads somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import reachable

from benchmarks.captures import README, ROOT, captured, pages, scripts
from benchmarks.docs_reference import REFERENCE, reference

PAGES = [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages()]
MARKED = re.compile(r"<!-- (?:capture|file): .+? -->\n```|```sh\n")
INSTALLED_BY_CI = 'pip install -e ".[test]"'
"""In the README's command for the tests, which `.ci/run` takes from there and runs."""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_commands_print(page: Path) -> None:
    if page.name != "README.md":
        pytest.importorskip("torch")
    text = page.read_text("utf-8")
    assert captured(text) == text, f"run: python -m benchmarks.captures --write {page.relative_to(ROOT)}"


def test_pages_show_much() -> None:
    assert README.read_text("utf-8").count("<!-- capture:") >= 4
    assert sum(len(scripts(page.read_text("utf-8"), installing=False)) for page in pages()) >= 10


@pytest.mark.parametrize("page", PAGES)
def test_no_command_of_the_docs_goes_unplayed(page: Path) -> None:
    """Commands stand in captures and in sh blocks; another block with one would be played by nobody."""
    if page in (README, REFERENCE):
        pytest.skip("the README's other blocks are examples of files; the help's examples are run by test_help.py")
    text = page.read_text("utf-8")
    fences = re.findall(r"^```\w+$", text, re.MULTILINE)
    assert len(fences) == len(MARKED.findall(text)), "a block without a marker"
    assert len(re.findall(r"^\$ ", text, re.MULTILINE)) == 2 * text.count("<!-- capture:")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}, target


def test_the_reference_is_that_of_the_code() -> None:
    assert REFERENCE.read_text("utf-8") == reference(), "run: python -m benchmarks.docs_reference --write"


def test_the_workflow_of_the_guide_is_githubs_syntax(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    text = (ROOT / "docs" / "ci.md").read_text("utf-8")
    found = re.search(r"<!-- file: \.github/workflows/.+? -->\n```yaml\n(.*?)```", text, re.DOTALL)
    assert found
    file = tmp_path / "workflow.yml"
    file.write_text(found[1], "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


INSTALLING = [script for page in pages() for script in scripts(page.read_text("utf-8"), installing=True)]


@pytest.mark.slow
@pytest.mark.parametrize("script", [one for one in INSTALLING if INSTALLED_BY_CI not in one])
def test_an_installation(script: str, tmp_path: Path) -> None:
    """In a copy of this tree, as a new user's checkout."""
    if not reachable():
        pytest.skip("no package index can be reached, from which pip would install")
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".git", "tests", "*.egg-info", "build", "dist", ".venv", ".*_cache")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_for_the_tests_is_run_by_ci() -> None:
    (command,) = [one for one in INSTALLING if INSTALLED_BY_CI in one]
    assert INSTALLED_BY_CI in (ROOT / ".ci" / "run").read_text("utf-8") and ".venv/bin/pytest" in command
