"""TensorFlow through the front door: ``load``, the command line, and what goes wrong there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graphcost
from graphcost.cli.main import main
from graphcost.errors import UsageError
from graphcost.graph import totals
from graphcost.sources import expand, open_sizes

keras = pytest.importorskip("keras", reason="keras is an extra")
pytest.importorskip("tensorflow", reason="tensorflow is an extra")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # Keras' own


def perceptron() -> object:
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(2)])


def test_a_keras_model_is_a_source() -> None:
    graph = graphcost.load(perceptron(), batch=3)
    assert totals(graph).cost.matmul_flops == 2 * 3 * (8 * 4 + 4 * 2)
    assert totals(graph).params == 8 * 4 + 4 + 4 * 2 + 2


def test_files_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perceptron().save(tmp_path / "m.keras")
    perceptron().export(tmp_path / "saved", verbose=False)
    assert expand(str(tmp_path)) == [str(tmp_path / "m.keras"), str(tmp_path / "saved")]
    assert main(["count", str(tmp_path), "--batch", "3", "--format", "json", "--quiet"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["graph"]["matmul_flops"] for result in results] == [2 * 3 * (8 * 4 + 4 * 2)] * 2
    assert open_sizes(tmp_path / "saved") == ("batch",)


def test_a_signature_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perceptron().export(tmp_path / "saved", verbose=False)
    capsys.readouterr()
    assert main(["count", str(tmp_path / "saved"), "--signature", "srve", "--quiet"]) == 2
    assert "serve" in capsys.readouterr().err
    perceptron().save(tmp_path / "m.keras")
    assert main(["count", str(tmp_path / "m.keras"), "--signature", "serve", "--quiet"]) == 2


def test_keras_applications_by_name() -> None:
    graph = graphcost.load("keras:VGG16", batch=1)
    assert (totals(graph).macs, totals(graph).params) == (15_470_264_320, 138_357_544)
    with pytest.raises(UsageError, match="did you mean 'VGG16'"):
        graphcost.load("keras:VGG166")


def test_a_callable_may_return_a_keras_model(tmp_path: Path) -> None:
    script = tmp_path / "build.py"
    layers = "[keras.Input((8,)), keras.layers.Dense(4)]"
    script.write_text(f"import keras\n\ndef model():\n    return keras.Sequential({layers})\n")
    assert totals(graphcost.load(f"{script}:model", batch=2)).cost.matmul_flops == 2 * 2 * 8 * 4
