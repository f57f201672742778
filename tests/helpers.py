"""What several test files share."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

import onnx
from onnx import TensorProto, helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Full-size architectures in a few kilobytes, inside the onnx wheel."""

RESNET50 = LIGHT / "light_resnet50.onnx"
VGG19 = LIGHT / "light_vgg19.onnx"


def shared_folder() -> Path | None:
    """Where larger files for tests lie, if they do: $GRAPHCOST_SHARED, or beside the checkout."""
    place = Path(os.environ.get("GRAPHCOST_SHARED", Path(__file__).parents[2] / "shared"))
    return place if place.is_dir() else None


def without_batch(folder: Path) -> str:
    """A model of one scalar, which has no batch dimension."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "scalar", values[:1], values[1:])
    onnx.save(helper.make_model(graph), folder / "scalar.onnx")
    return str(folder / "scalar.onnx")


def reachable(url: str = "https://pypi.org/simple/click/") -> bool:
    """Whether a package index answers, from which pip would install."""
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
