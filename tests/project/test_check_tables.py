"""Growth against a base in the formats that are tables and pages."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from project.helpers_project import BOUND, CLEAR, HEAD, Folder

MODELS = '[[models]]\nsource = "model.onnx"\n[[models]]\nsource = "zoo:mlp"\n'
FILES = ("c.csv", "t.tex", "p.html", "r.json")


@pytest.fixture
def grown(folder: Folder) -> Folder:
    """A baseline of one model, then another network in its place and a second model."""
    folder.write(HEAD + 'baseline = "baseline.json"\n[[models]]\nsource = "model.onnx"\n')
    folder.copy(CLEAR, "model.onnx")
    assert folder.check("--update-baseline")[0] == 0
    folder.copy(BOUND, "model.onnx")
    folder.write(HEAD + 'baseline = "baseline.json"\n' + MODELS)
    return folder


def written(folder: Folder) -> dict[str, str]:
    folder.check(*(word for file in FILES for word in ("--output", file)))
    return {file: Path(file).read_text("utf-8") for file in FILES}


def test_growth_is_in_every_table(grown: Folder) -> None:
    found = written(grown)
    models = {one["name"]: one for one in json.loads(found["r.json"])["models"]}
    deltas = {one["metric"]: one for one in models["model.onnx"]["deltas"]}
    rows = {row["model"]: row for row in csv.DictReader(io.StringIO(found["c.csv"]))}
    was = rows["model"]
    assert (was["status"], was["change"]) == ("fail", "changed")
    assert int(was["params"]) == deltas["params"]["head"] and float(was["base_params"]) == deltas["params"]["base"]
    assert float(was["base_step_s"]) == deltas["step_s"]["base"] != float(was["step_s"])
    assert (rows["mlp"]["change"], rows["mlp"]["base_step_s"]) == ("added", "")

    points = f"{(deltas['comm_share']['head'] - deltas['comm_share']['base']) * 100:+.1f} points"
    assert points in found["t.tex"] and points in found["p.html"]
    assert "pass, added" in found["t.tex"] or "FAIL, added" in found["t.tex"]
    assert found["p.html"].index("1 changed, 1 added against baseline.json") < found["p.html"].index('id="overview"')


def test_without_a_base_they_are_those_of_the_analyses(folder: Folder) -> None:
    folder.write(HEAD + MODELS)
    folder.copy(CLEAR, "model.onnx")
    found = written(folder)
    assert "base_step_s" not in found["c.csv"] and 'id="check"' not in found["p.html"]
    assert "training FLOP" in found["t.tex"]
