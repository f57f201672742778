"""Files of the shared folder against hand-worked and independently measured totals."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tensorflow")

from helpers import shared_folder
from tf_models import load, total

SHARED = shared_folder()
_FORMATS = ("savedmodel", "h5", "graphdef")


def cases():
    if SHARED is None:
        return []
    listed = json.loads((SHARED / "cases" / "cases.json").read_text())["cases"]
    return [case for case in listed if case["file"].startswith("tf/")]


def models():
    if SHARED is None:
        return []
    return [
        m for m in json.loads((SHARED / "models" / "models.json").read_text())["models"] if m["format"] in _FORMATS
    ]


@pytest.mark.skipif(SHARED is None, reason="no shared folder")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case):
    expected = case["expected"]
    found = total(SHARED / "cases" / case["file"], case.get("bind", {}).get("batch"))
    assert found.cost.matmul_flops == expected["mac_flops"]
    assert (found.params, found.param_bytes) == (expected["params"], expected["param_bytes"])
    assert found.buffers == expected.get("buffers", 0)
    assert found.coverage.unknown == ()


@pytest.mark.skipif(SHARED is None, reason="no shared folder")
@pytest.mark.parametrize("entry", models(), ids=lambda entry: entry["id"])
def test_model(entry):
    shapes = {name: tuple(shape) for name, shape in entry["inputs"].items() if isinstance(shape, list)}
    values = {name: (1.0,) for name, shape in entry["inputs"].items() if not isinstance(shape, list)}
    found = total(SHARED / "models" / entry["path"], None, input_shapes=shapes, input_values=values)
    assert found.macs == entry["macs"]
    if "expected_params" in entry:
        assert found.params == entry["expected_params"]
    else:  # measured as elements of float constants: running statistics are among them
        about = entry["params_about"]
        assert min(abs(found.params - about), abs(found.params + found.buffers - about)) <= about // 100
    assert found.coverage.unknown == ()


@pytest.mark.skipif(SHARED is None, reason="no shared folder")
def test_work_grows_with_the_batch():
    path = SHARED / "models" / "mlperf_tiny_kws"
    assert total(path, 8).macs == 8 * total(path, 1).macs
    assert load(path, 8).batch == 8
