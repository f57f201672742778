"""Real and small public files with independently measured numbers, where they lie beside the checkout.

Their folder is named by $GRAPHCOST_SHARED; without it, and for models too large to keep
there, a test is skipped and says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from helpers import shared_folder

from graphcost.errors import GraphcostError, MissingSizeError
from graphcost.graph import step_cost
from graphcost.ir import OpNode

from .build import count

SHARED = shared_folder()


def _unbound(case: Any) -> dict[str, Any]:
    """What is expected where the user binds no size."""
    found: dict[str, Any] = case["expected"].get("unbound", {})
    return found


def _listed(path: str, key: str, name: str) -> list[Any]:
    if SHARED is None or not (SHARED / path).is_file():
        return [pytest.param(None, id=f"{key}-absent")]
    entries = json.loads((SHARED / path).read_text())[key]
    return [pytest.param(entry, id=entry["id"]) for entry in entries if entry[name] == "onnx"]


CASES = _listed("cases/cases.json", "cases", "framework")
UNBOUND = [param for param in CASES if param.values[0] is None or "error" in _unbound(param.values[0])]
MODELS = _listed("models/models.json", "models", "format")


def _present(entry: Any) -> tuple[Any, Path]:
    if entry is None or SHARED is None:
        pytest.skip("no folder of shared files: set GRAPHCOST_SHARED")
    return entry, SHARED


def _bindings(bind: dict[str, Any]) -> dict[str, Any]:
    """``bind`` of a case: lists are whole shapes, numbers are sizes by name."""
    return {
        "dims": {name: size for name, size in bind.items() if not isinstance(size, list)},
        "input_shapes": {name: tuple(shape) for name, shape in bind.items() if isinstance(shape, list)},
    }


@pytest.mark.parametrize("case", CASES)
def test_case(case: Any) -> None:
    case, shared = _present(case)
    path, expected = shared / "cases" / case["file"], case["expected"]
    if "error" in expected:
        with pytest.raises(GraphcostError) as caught:
            count(path)
        for word in expected["error"]["must_mention"]:
            assert word.lower() in str(caught.value).lower()
        return
    found = count(path, **_bindings(case.get("bind", {})))
    assert found.found == (expected["mac_flops"], expected["params"], expected["param_bytes"])
    assert found.totals.buffers == expected.get("buffers", 0)
    unsupported = {kind.rpartition(".")[2] for kind in found.unknown}
    assert unsupported == set(expected.get("unsupported", ()))
    if "nodes_out_of_order" in case["id"]:
        assert "not in execution order" in found.notes
    if "missing" in case["id"]:
        assert "absent" in found.notes


@pytest.mark.parametrize("case", UNBOUND)
def test_open_sizes_are_asked_for(case: Any) -> None:
    case, shared = _present(case)
    with pytest.raises(MissingSizeError) as caught:
        count(shared / "cases" / case["file"])
    for word in _unbound(case)["error"]["must_mention"]:
        assert word.lower() in str(caught.value).lower()


def test_if_follows_a_condition_that_is_given() -> None:
    _, shared = _present({})
    path = shared / "cases" / "if_two_branches.onnx"
    name = onnx.load(path).graph.node[0].input[0]
    assert count(path, input_values={name: (False,)}).flops == 128
    assert count(path, input_values={name: (True,)}).flops == 2048


def _model_path(entry: Any, shared: Path) -> Path:
    stated: str = entry["path"]
    if stated.startswith("onnx:"):
        path = Path(onnx.__file__).parent / stated.removeprefix("onnx:")
    else:
        path = shared / "models" / stated
    if stated.startswith("(") or not path.is_file():
        pytest.skip(f"too large to keep; get it with: {entry['get']}")
    return path


def _inputs(stated: dict[str, Any]) -> dict[str, Any]:
    """Shapes as lists or in words (``int32 [1,4]``), scalars by value (``int64 scalar 16000``)."""
    shapes: dict[str, tuple[int, ...]] = {}
    values: dict[str, tuple[int, ...]] = {}
    for name, text in stated.items():
        if isinstance(text, list):
            shapes[name] = tuple(text)
        elif "[" in text:
            shape = tuple(int(size) for size in text.partition("[")[2].partition("]")[0].split(","))
            layers = range(5) if name == "past_0" else None  # past_0 stands for past_0..past_4
            shapes |= {f"past_{i}": shape for i in layers} if layers else {name: shape}
        else:
            values[name] = (int(text.split()[-1]),)
    return {"input_shapes": shapes, "input_values": values}


@pytest.mark.parametrize("entry", MODELS)
def test_model(entry: Any) -> None:
    entry, shared = _present(entry)
    found = count(_model_path(entry, shared), **_inputs(entry["inputs"]))
    assert found.flops == entry["mac_flops"]
    assert found.unknown == {}
    if "expected_params" in entry:
        assert found.totals.params == entry["expected_params"]
    else:
        assert found.totals.params == pytest.approx(entry["params_about"], rel=0.01)
    statistics = entry["measured_params"].get("bn_stats")
    if statistics is not None:
        assert found.totals.buffers == statistics
    per_op: dict[str, int] = {}
    for node in found.model.nodes:
        if node.op_type in entry["macs_by_op"]:
            per_op[node.op_type] = per_op.get(node.op_type, 0) + _macs(node)
    assert per_op == entry["macs_by_op"]


def _macs(node: OpNode) -> int:
    cost = step_cost(node)
    return 0 if cost is None else cost.matmul_flops // 2
