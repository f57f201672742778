"""Plots: a file of the right kind, the same bytes twice, text that stays text, one line where it cannot be."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graphcost.cli.main import main
from graphcost.report.palette import MEMORY, PARTS
from graphcost.report.plots import sweep_plot

pytest.importorskip("matplotlib")
BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
COMMANDS = {
    "one": ["analyze", "zoo:resnet50", "--gpus", "16", "--batch", "4", "--network", "25Gb/s"],
    "several": ["analyze", "zoo:mlp", "zoo:resnet18", "--gpus", "8", "--batch", "4"],
    "paper": ["analyze", "zoo:mlp", "--gpus", "8", "--batch", "4", "--profile", "paper"],
    "sweep": ["sweep", "zoo:mlp", "--gpus", "16", "--vary", "network=10,25,100Gb/s", "--vary", "batch=8,16"],
    "grid": ["sweep", "zoo:mlp", "--gpus", "16", "--grid", "--vary", "network=10,25Gb/s", "--vary", "batch=8,16"],
    "archs": ["compare", "zoo:mlp", "--gpus", "8", "--batch", "4"],
    "pareto": [
        "compare",
        "zoo:mlp",
        "zoo:gpt2",
        "--pareto",
        "--cluster",
        "aws-p4d,aws-p3.16xlarge",
        "--gpus",
        "8,16",
    ],
    "scaling": ["compare", "zoo:mlp", "zoo:resnet18", "--gpus", "1,2,8,16", "--batch", "4"],
}


@dataclass(frozen=True, slots=True)
class Line:
    resource: str
    unit: str
    label: str
    values: tuple[float, ...]
    step_s: tuple[float, ...]
    comm_share: tuple[float, ...]


LINES = [
    Line("network", "Gb/s", "allreduce", (10, 25, 100), (0.3, 0.2, 0.1), (0.7, 0.5, 0.1)),
    Line("network", "Gb/s", "ps $x$", (10, 25, 100), (0.4, 0.2, 0.1), (0.8, 0.5, 0.1)),
    Line("batch", "", "batch", (1, 2), (0.1, 0.11), (0.0, 0.0)),
]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("suffix", BEGINS)
def test_the_same_bytes_twice(suffix: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"{which}{suffix}" for which in "ab"]
    words = [word for file in files for word in ("--plot", str(file))]
    assert main([*COMMANDS[name], "--quiet", *words]) in (0, 1)  # 1: flagged
    first, second = (file.read_bytes() for file in files)
    assert first == second and first.startswith(BEGINS[suffix])


def test_text_stays_text(tmp_path: Path) -> None:
    sweep_plot(LINES, str(tmp_path / "s.svg"))
    drawn = (tmp_path / "s.svg").read_text("utf-8")
    for word in ("network, Gb/s", "allreduce", "ps $x$", "communication, share of the step", "300 ms"):
        assert f">{word}<" in drawn, word
    assert "<dc:date>" not in drawn


def test_no_screen_is_looked_for_and_analyze_alone_needs_no_matplotlib(tmp_path: Path) -> None:
    script = (
        "import sys; from graphcost.cli.main import main; main(['analyze', 'zoo:mlp', '--quiet']); "
        "assert 'matplotlib' not in sys.modules; "
        f"main(['analyze', 'zoo:mlp', '--quiet', '--plot', {str(tmp_path / 'p.png')!r}]); "
        "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("command", ["analyze", "compare"])
@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("x.bmp", "--plot x.bmp: no picture of suffix '.bmp' (known: .png, .svg, .pdf)"),
        ("x", "no picture of suffix ''"),
        ("/nonexistent/x.png", "cannot be written"),
    ],
)
def test_bad_files_are_one_line(command: str, file: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "zoo:mlp", "--quiet", "--plot", file]) == 2
    said = capsys.readouterr().err
    assert complaint in said and said.count("\n") == 1


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    known = importlib.util.find_spec
    hidden: Any = lambda name: None if name == "matplotlib" else known(name)  # noqa: E731
    monkeypatch.setattr("graphcost.report.plots.figure.find_spec", hidden)
    assert main(["analyze", "zoo:mlp", "--quiet", "--plot", "x.png"]) == 2
    assert "pip install 'graphcost[plot]'" in capsys.readouterr().err


def lightness(colour: str) -> float:
    """CIE L* of an sRGB colour: what is left of it in grey."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("inks", [PARTS, MEMORY], ids=["parts", "memory"])
def test_neighbours_stay_apart_in_grey(inks: Any, theme: str) -> None:
    """Eight steps of lightness between what touches, or a hatch on one of them."""
    ordered = list(inks.items())
    for (name, one), (after, other) in pairwise(ordered):
        apart = abs(lightness(getattr(one, theme)) - lightness(getattr(other, theme)))
        assert apart >= 8 or one.hatch != other.hatch, (name, after, apart)
