"""Traces on disk: another batch by multiplication, files whole or not at all, old ones made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphcost.graph import build_graph, totals
from graphcost.ir import Model
from graphcost.models_zoo import build
from graphcost.training import plan_step
from graphcost.validation import traces
from graphcost.validation.traces import TRACE_BATCH, at_batch, model_at, read_trace, store, trace_file


@pytest.mark.parametrize("name", ["resnet18", "bert-base", "mobilenet-v3-small", "neumf-ml1m"])
@pytest.mark.parametrize("batch", [1, 6])
def test_a_trace_at_another_batch_is_the_model_built_there(name: str, batch: int) -> None:
    moved = build_graph(at_batch(build(name, batch=TRACE_BATCH), batch))
    made = build_graph(build(name, batch=batch))
    assert totals(moved).cost == totals(made).cost and totals(moved).params == totals(made).params
    assert plan_step(moved).memory == plan_step(made).memory


def test_zoo_models_are_built_and_leave_no_file(tmp_path: Path) -> None:
    assert model_at("zoo:resnet18", 4, {"image": 64}, tmp_path).inputs["image"].shape == (4, 3, 64, 64)
    assert list(tmp_path.iterdir()) == []


def test_others_are_traced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(source: str, options: object) -> Model:
        asked.append(source)
        return replace(build("mlp", batch=TRACE_BATCH), source=source)

    monkeypatch.setattr(traces, "load_model", load)
    found = [model_at("timm:some", batch, {"image": 224}, tmp_path) for batch in (2, 8)]
    assert asked == ["timm:some"]
    assert [model.batch for model in found] == [2, 8]
    assert (tmp_path / "timm" / "some@224.json.gz").is_file()
    assert model_at("timm:some", 4, {}, None).batch == 4 and len(asked) == 2  # no folder, no file


def test_a_damaged_trace_is_made_again(tmp_path: Path) -> None:
    path = trace_file("timm:a/b", {"image": 32}, tmp_path)
    assert path == tmp_path / "timm" / "a_b@32.json.gz"
    assert read_trace(path) is None
    store(build("mlp", batch=TRACE_BATCH), path)
    whole = path.read_bytes()
    assert read_trace(path) is not None
    path.write_bytes(whole[: len(whole) // 2])
    assert read_trace(path) is None
    path.write_bytes(b"{}")
    assert read_trace(path) is None
