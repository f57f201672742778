"""The repository's own promises: packages, links, README, line counts."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.captures import README

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ROOT_FOLDERS = ("frontends", "device_db", "models_zoo")


def test_every_package_of_the_tree_is_listed() -> None:
    found = {"graphcost"}
    for top in ("graphcost", *ROOT_FOLDERS):
        for init in (ROOT / top).rglob("__init__.py"):
            folder = init.parent.relative_to(ROOT)
            name = ".".join(folder.parts)
            if not any(part in ROOT_FOLDERS for part in folder.parts[1:]):
                found.add(name if top == "graphcost" else f"graphcost.{name}")
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found


@pytest.mark.parametrize("name", ROOT_FOLDERS)
def test_root_folders_are_linked_into_the_package(name: str) -> None:
    link = ROOT / "graphcost" / name
    assert link.is_symlink() and link.readlink() == Path(f"../{name}")
    assert PROJECT["tool"]["setuptools"]["package-dir"][f"graphcost.{name}"] == name


def test_extras_exist_and_frameworks_are_extras() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert {"all", "test", "torch", "tensorflow"} <= set(extras)
    core = " ".join(PROJECT["project"]["dependencies"])
    assert not any(name in core for name in ("torch", "tensorflow", "pandas"))


def test_readme_names_what_exists() -> None:
    text = README.read_text("utf-8")
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "benchmarks/README.md"):
        assert name in text and (ROOT / name).is_file()
    assert 'pip install -e ".[test]" -c constraints.txt && .venv/bin/pytest' in text
    from graphcost.device_db import cluster_names, device_names

    assert f"{len(device_names())} accelerators" in text and f"{len(cluster_names())} clusters" in " ".join(
        text.split()
    )


def sources() -> list[Path]:
    return sorted(path for top in ("graphcost", *ROOT_FOLDERS) for path in (ROOT / top).rglob("*.py"))


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in sources()
        if (count := len(path.read_text().splitlines())) > 330
    }
    assert long == {}


TAKES_ITS_SETTINGS_FROM_THE_ENVIRONMENT = {"graphcost/many/ray_cluster.py"}
"""Files about an engine that can be set up in no other way; they put back what they change."""


def test_only_the_command_line_prints_or_reads_the_environment() -> None:
    offenders = []
    for path in sources():
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                offenders.append(f"{path}: print")
            engine = path.relative_to(ROOT).as_posix() in TAKES_ITS_SETTINGS_FROM_THE_ENVIRONMENT
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and not engine:
                offenders.append(f"{path}: environment")
    assert offenders == []


def test_help_of_every_command() -> None:
    for command in ("analyze", "count", "compare", "graph", "ops", "devices", "zoo"):
        done = subprocess.run(
            [sys.executable, "-m", "graphcost", command, "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and "Usage: graphcost" in done.stdout, done.stderr


def test_names_of_test_files_occur_once() -> None:
    """Files outside packages share one namespace; pytest refuses the second of a name."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if not (path.parent / "__init__.py").exists()]
    names = Counter(path.name for path in files if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
