"""Shell completion: by click's protocol, and with the Tab key in a real bash."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import RESNET50

from graphcost.cli.main import main

ROOT = Path(__file__).parents[1]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model; `graphcost` on the path is this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "graphcost").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphcost "$@"\n', "utf-8")
    (folder / "graphcost").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    place = tmp_path / "work"
    place.mkdir()
    shutil.copy(RESNET50, place / "detector.onnx")
    monkeypatch.chdir(place)
    return place


def completed(line: str, shell: str) -> list[str]:
    """Values that the command answers for a line with the cursor at its end."""
    words = line.split(" ")
    given = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_GRAPHCOST_COMPLETE": f"{shell}_complete"}
    if shell == "fish":
        given["COMP_CWORD"] = words[-1]
    done = subprocess.run(["graphcost"], env={**os.environ, **given}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    if shell == "zsh":
        return [
            value.replace("\\:", ":") for kind, value in zip(lines[::3], lines[1::3], strict=True) if kind != "file"
        ]
    return [line.partition(",")[2].partition("\t")[0] for line in lines if not line.startswith("file,")]


CASES = [
    ("graphcost ana", {"analyze"}, set()),
    ("graphcost ", {"analyze", "check", "completion", "schedule"}, set()),
    ("graphcost fleet ", {"generate", "project"}, {"analyze"}),
    ("graphcost analyze --ove", {"--overlap"}, {"--cluster"}),
    ("graphcost analyze zoo:resnet5", {"zoo:resnet50"}, {"zoo:resnet18"}),
    ("graphcost analyze zoo:mlp zoo:resnet1", {"zoo:resnet18", "zoo:resnet152"}, {"zoo:mlp"}),
    ("graphcost analyze zoo:mlp --cluster aws-p3", {"aws-p3.16xlarge"}, {"dgx-a100"}),
    ("graphcost analyze zoo:mlp --device h100", {"h100-sxm"}, {"a100-sxm-80"}),
    ("graphcost analyze zoo:mlp --arch ze", {"zero1", "zero2", "zero3"}, {"ps"}),
    ("graphcost analyze zoo:mlp --precision amp-", {"amp-fp16", "amp-bf16"}, {"fp32"}),
    ("graphcost analyze zoo:mlp --buckets ", {"ddp", "horovod"}, {"SIZE"}),
    ("graphcost analyze --format s", {"sarif"}, {"json"}),
    ("graphcost compare zoo:mlp --cluster dgx-a100,aws-p3.1", {"dgx-a100,aws-p3.16xlarge"}, set()),
    ("graphcost devices dgx-h", {"dgx-h100"}, set()),
    ("graphcost zoo vgg1", {"vgg16", "vgg19"}, set()),
    ("graphcost schedule simulate --scheduler s", {"srtf"}, {"drf"}),
    ("graphcost completion ", {"bash", "zsh", "fish"}, set()),
]  # fmt: skip


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize(("line", "has", "lacks"), CASES, ids=[line for line, _, _ in CASES])
def test_the_protocol_of_bash(line: str, has: set[str], lacks: set[str]) -> None:
    found = set(completed(line, "bash"))
    assert has <= found and not lacks & found, found


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_protocols_of_zsh_and_fish(shell: str) -> None:
    assert "zoo:resnet50" in completed("graphcost analyze zoo:resnet5", shell)
    assert "aws-p3.16xlarge" in completed("graphcost analyze zoo:mlp --cluster aws-p3", shell)


@pytest.mark.parametrize(
    ("shell", "says"), [("bash", "complete -o nosort -F"), ("zsh", "#compdef"), ("fish", "function")]
)
def test_scripts(shell: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert says in out and f"_GRAPHCOST_COMPLETE={shell}_complete" in out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=out, text=True, capture_output=True, check=False)
        assert checked.returncode == 0 and checked.stderr == ""


def test_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


class Bash:
    """An interactive bash on a terminal of its own, with the completion loaded."""

    def __init__(self, folder: Path) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=folder,
            env={**os.environ, "PS1": "READY> ", "TERM": "dumb", "COLUMNS": "200", "INPUTRC": os.devnull},
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.until("READY> ")
        self.send("bind 'set enable-bracketed-paste off'; source <(graphcost completion bash); echo lo''aded\n")
        self.until("loaded\r\nREADY> ")

    def send(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, ending: str, timeout_s: float = 60.0) -> str:
        """What is shown until ``ending`` is."""
        shown, end = "", time.monotonic() + timeout_s
        while ending not in shown:
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no {ending!r} in {shown!r}"
            shown += os.read(self.master, 65536).decode(errors="replace")
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def bash(commands: Path) -> Iterator[Bash]:
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    found = Bash(commands)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        ("graphcost ana", "graphcost analyze "),
        ("graphcost analyze zoo:resnet5", "graphcost analyze zoo:resnet50 "),
        ("graphcost analyze det", "graphcost analyze detector.onnx "),
        pytest.param(
            "graphcost analyze zoo:mlp --arch=pea", "graphcost analyze zoo:mlp --arch=pearl ", marks=pytest.mark.slow
        ),
        pytest.param("graphcost devices aws-p3.16", "graphcost devices aws-p3.16xlarge ", marks=pytest.mark.slow),
    ],
)
def test_the_tab_key(bash: Bash, typed: str, becomes: str) -> None:
    bash.send(f"{typed}\t")
    bash.until(becomes)


def test_two_tabs_list_what_there_is(bash: Bash) -> None:
    bash.send("graphcost analyze zoo:mlp --arch zero\t\t")
    shown = bash.until("zero3")
    assert "zero1" in shown and "zero2" in shown
