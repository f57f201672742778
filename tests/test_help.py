"""Help of every command: it ends with examples, and they run."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from helpers import LIGHT
from project.helpers_project import HEAD, Folder

from graphcost.cli.main import cli, main

MEASURED = Path(__file__).parents[1] / "benchmarks" / "measured" / "lambda_tensorflow.csv"
SLOW = (
    "graphcost calibrate",
    "graphcost validate",
    "graphcost fleet sweep",
    "graphcost schedule train",
    "graphcost schedule live",
)
"""Those that take more than a few seconds."""


def commands(
    command: click.Command = cli, name: str = "graphcost", parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command and group, by its words."""
    context = click.Context(command, parent, name, **command.context_settings)
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from commands(found, one, context)


COMMANDS = {words: (command, context) for words, command, context in commands()}


def examples_of(words: str) -> list[str]:
    command, context = COMMANDS[words]
    _, heading, shown = command.get_help(context).partition("\n  Examples:\n")
    assert heading, f"{words} --help shows no examples"
    return [line.strip() for line in shown.splitlines()]


EXAMPLES = [example for words in COMMANDS for example in examples_of(words)]


def test_every_command_is_here() -> None:
    assert {"graphcost", "graphcost fleet project", "graphcost schedule compare", "graphcost sweep"} <= set(COMMANDS)
    assert len(COMMANDS) >= 26


@pytest.mark.parametrize("words", COMMANDS)
def test_help_ends_with_examples_of_that_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split()[1:], "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {words} ")
    found = examples_of(words)
    assert found and shown.rstrip().splitlines()[-len(found) :] == [f"    {example}" for example in found]
    assert all(example.startswith(words) for example in found)
    assert max(len(line) for line in shown.splitlines()) <= 118


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that examples name: models, a project with a remote, tables."""
    place = tmp_path_factory.mktemp("examples")
    shutil.copy(LIGHT / "light_squeezenet.onnx", place / "model.onnx")
    shutil.copy(LIGHT / "light_bvlc_alexnet.onnx", place / "base.onnx")
    shutil.copy(MEASURED, place / "step_times.csv")
    (place / "machines").mkdir()
    (place / "graphcost.toml").write_text(f'{HEAD}[[models]]\nsource = "model.onnx"\n', "utf-8")
    (place / "jobs.csv").write_text("model,gpus,batch,arch\nmodel.onnx,8,32,allreduce-local\n", "utf-8")
    (place / "philly.csv").write_text("submit_s,duration_s,num_gpus,vc\n0,360000,1,a\n5,360000,8,a\n", "utf-8")
    project = Folder(place, None)  # type: ignore[arg-type]
    project.git("init", "-q", "-b", "main")
    project.commit("a project")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    return place


@pytest.mark.parametrize(
    "example", [pytest.param(one, marks=pytest.mark.slow) if one.startswith(SLOW) else one for one in EXAMPLES]
)
def test_an_example_runs(
    example: str, played: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(played)
    words = shlex.split(example.partition(" >")[0])  # without the shell's redirection
    assert words[0] == "graphcost"
    if "jobs.parquet" in words and "generate" not in words and not (played / "jobs.parquet").exists():
        assert main(shlex.split("fleet generate --count 2000 --output jobs.parquet")) == 0
    code = main(words[1:])
    out, err = capfd.readouterr()
    assert code in (0, 1) and "error:" not in err, err
    assert out or "--output" in words
    for index, word in enumerate(words):
        if word == "--output":
            assert (played / words[index + 1]).exists()
