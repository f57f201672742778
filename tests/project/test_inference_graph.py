"""Exports for inference are recognised, and what is assumed of their training is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from helpers import LIGHT, RESNET50, shared_folder
from onnx import TensorProto, helper

from graphcost.analysis import analyze
from graphcost.errors import MissingSizeError


def notes(source: Any, **options: Any) -> list[str]:
    return [f.message for f in analyze(source, **options).findings if f.rule == "inference-graph"]


def network(path: Path, names: str, *, bias: bool = True, norm: bool = False, shortcut: bool = True) -> str:
    """Four convolutions of 8 channels, as the arguments say; weights are called ``names`` and a number."""
    nodes, weights, value = [], [], "x"
    for index in range(4):
        parts = {f"{names}{10 * index}": [8, 8, 1, 1], **({f"b{index}": [8]} if bias else {})}
        weights += [helper.make_tensor(k, TensorProto.FLOAT, s, bytes(4 * 8 * (8 if len(s) > 1 else 1)), raw=True)
                    for k, s in parts.items()]  # fmt: skip
        nodes.append(helper.make_node("Conv", [value, *parts], [f"c{index}"]))
        last = f"c{index}"
        if norm:
            scales = [f"{part}{index}" for part in ("s", "o", "m", "v")]
            weights += [helper.make_tensor(name, TensorProto.FLOAT, [8], bytes(32), raw=True) for name in scales]
            nodes.append(helper.make_node("BatchNormalization", [last, *scales], [f"n{index}"]))
            last = f"n{index}"
        value = f"y{index}"
        nodes.append(helper.make_node("Add", [last, f"y{index - 1}" if index else "x"], [value]) if shortcut
                     else helper.make_node("Relu", [last], [value]))  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8, 6, 6]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"names": "onnx::Conv_"}, "batch norm is folded into 4 convolutions"),
        ({"names": "onnx::Conv_", "shortcut": False}, "batch norm is folded into 4 convolutions"),
        ({"names": "w"}, "perhaps an export for inference: all 4 convolutions have a bias and no norm"),
        ({"names": "w", "shortcut": False}, None),  # as VGG: a bias everywhere, and never a norm
        ({"names": "w", "bias": False}, None),
        ({"names": "w", "norm": True}, None),
    ],
)
def test_folded_batch_norms(tmp_path: Path, arguments: dict[str, Any], says: str | None) -> None:
    found = notes(network(tmp_path / "m.onnx", **arguments))
    assert [says in note for note in found if says is not None] == ([True] if says else []) and bool(found) == bool(
        says
    )
    assert all("training is predicted for the graph as it stands" in note for note in found)
    assert notes(str(tmp_path / "m.onnx"), optimizer="none") == []  # inference is what it is for


def test_public_models() -> None:
    assert notes(str(RESNET50), batch=8) == []
    for name in ("vgg19", "bvlc_alexnet", "zfnet512", "squeezenet", "inception_v1"):
        assert notes(str(LIGHT / f"light_{name}.onnx"), batch=8) == []
    (one,) = notes(str(RESNET50), gpus=8)
    assert "fixes the batch at 1" in one and one.endswith("; --batch 32 works")


def test_real_exports_for_inference() -> None:
    folder = shared_folder()
    if folder is None:
        pytest.skip("no folder of larger test files")
    folded, _ = notes(str(folder / "models/fastestdet/FastestDet.onnx"))
    assert "folded into 70 convolutions" in folded
    guessed, _ = notes(str(folder / "models/ultraface_rfb320/Ultraface_version-RFB-320.onnx"))
    assert guessed.startswith("perhaps an export for inference: all 52 convolutions have a bias")
    quantised, _ = notes(str(folder / "cases/qdq_conv_int8.onnx"))
    assert "96% of the weights are stored as int8" in quantised
    with pytest.raises(MissingSizeError):
        notes(str(folder / "models/rapidocr_cls/ch_ppocr_mobile_v2.0_cls_infer.onnx"))
