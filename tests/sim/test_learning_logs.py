"""The curve as TensorBoard reads it, with TensorBoard's own reader, against the CSV of the same run."""

from __future__ import annotations

import csv
import sys
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("tensorboard")

from graphcost.cli.main import main
from graphcost.sim.learning.options import Record

TRAIN = [
    "schedule", "train", "--workload", "dl2-development", "--count", "6", "--nodes", "4", "--hidden", "8",
    "--warm-up-traces", "1", "--warm-up-updates", "20", "--critic-updates", "4", "--buffer", "128", "--batch", "32",
    "--validation-traces", "1", "--validate-every", "10", "--quiet",
]  # fmt: skip
FIGURES = ("policy_loss", "value_loss", "entropy", "reward_per_slot", "mean_jct_s")

Curves = dict[str, list[tuple[int, float]]]


def written(folder: Path) -> Curves:
    """Every tag's (step, value), in the order of the files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def logged(log: Path) -> Curves:
    """The same from the CSV; empty cells are no points."""
    found: Curves = {}
    for row in csv.DictReader(log.read_text("utf-8").splitlines()):
        for name in FIGURES:
            if row[name]:
                found.setdefault(f"{row['phase']}/{name}", []).append((int(row["updates"]), float(row[name])))
    return found


def assert_equal(events: Curves, log: Curves) -> None:
    assert events.keys() == log.keys()
    for tag, points in log.items():
        assert [step for step, _ in events[tag]] == [step for step, _ in points], tag
        assert [value for _, value in events[tag]] == pytest.approx([value for _, value in points], rel=1e-6), tag


def test_every_figure_of_every_record_is_there(tmp_path: Path) -> None:
    """Also where a second run goes on in the same folder: no point is missing, none is there twice."""
    events, log, output = tmp_path / "events", tmp_path / "log.csv", tmp_path / "p.pt"
    run = [*TRAIN, "--output", str(output), "--tensorboard", str(events), "--log", str(log)]
    assert main([*run, "--updates", "0"]) == 0
    first = logged(log)
    assert set(first) == {"warm-up/policy_loss", "warm-up/mean_jct_s"} and len(first["warm-up/mean_jct_s"]) == 2
    assert_equal(written(events), first)
    assert main([*run, "--updates", "20", "--resume"]) == 0
    whole = logged(log)
    assert {f"reinforce/{name}" for name in FIGURES} < set(whole)
    assert_equal(written(events), whole)


def test_the_figures_are_those_of_a_record() -> None:
    numbers = [one.name for one in fields(Record) if one.type in ("float", "float | None")]
    assert tuple(numbers) == FIGURES


def test_without_tensorboard_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    output = tmp_path / "p.pt"
    assert main([*TRAIN, "--output", str(output), "--tensorboard", str(tmp_path / "events")]) == 2
    assert "--tensorboard needs tensorboard: pip install 'graphcost[tensorboard]'" in capsys.readouterr().err
    assert not output.exists()
