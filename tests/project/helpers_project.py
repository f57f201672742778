"""What the tests of a project share: a folder with a configuration, the command, git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers import LIGHT

from graphcost.cli.main import main

CLEAR = LIGHT / "light_squeezenet.onnx"
BOUND = LIGHT / "light_bvlc_alexnet.onnx"
"""Most of AlexNet's weights are in layers that compute little: on the network below, gradients are the step."""

HEAD = """
gpus = 16
cluster = "aws-p3.16xlarge"
network = "10Gb/s"
network-kind = "infiniband"
batch = 64
"""


class Folder:
    """A project in a temporary folder, which is the working folder."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.capsys = capsys

    def write(self, text: str, name: str = "graphcost.toml") -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def copy(self, model: Path, name: str) -> Path:
        file = self.path / name
        file.write_bytes(model.read_bytes())
        return file

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        self.capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    def check(self, *arguments: str | Path) -> tuple[int, str, str]:
        return self.run("check", *arguments)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(self.path), *identity, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")
