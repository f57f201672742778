"""Configurations that Keras 2 wrote, in the words of Keras 3."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError

_ANY = object()

# Keras 2 arguments that Keras 3 no longer has -> the value that changes nothing (any: it never did).
# Source: the layers' constructors in Keras 2.15 and 3.
_DROPPED: Mapping[str, Any] = {
    "time_major": False, "implementation": _ANY, "renorm": False, "renorm_clipping": _ANY, "renorm_momentum": _ANY,
    "fused": _ANY, "virtual_batch_size": None, "adjustment": None, "input_length": _ANY, "ragged": False,
    "experimental_autocast": _ANY, "synchronized": False,
}  # fmt: skip
_KEPT = {"synchronized": ("BatchNormalization",), "ragged": ("InputLayer",)}
_UNGROUPED = ("DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D",
              "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")  # fmt: skip
_RENAMED = {
    "Model": "Functional", "BatchNormalizationV1": "BatchNormalization", "BatchNormalizationV2": "BatchNormalization",
    "CuDNNLSTM": "LSTM", "CuDNNGRU": "GRU",
}  # fmt: skip
_MODULES = {"Functional": "keras.src.models.functional", "Sequential": "keras"}


def repaired(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration as Keras 3 takes it; raises ``ModelFileError`` for an argument that has no equal."""
    fixed: dict[str, Any] = _repaired(path, config)
    return fixed


def _repaired(path: Path, item: Any) -> Any:
    if isinstance(item, list):
        return [_repaired(path, each) for each in item]
    if not isinstance(item, dict):
        return item
    if "class_name" not in item or not isinstance(item.get("config"), dict):
        return {key: _repaired(path, value) for key, value in item.items()}
    kind = _RENAMED.get(str(item["class_name"]), str(item["class_name"]))
    config = dict(item["config"])
    if kind in ("Policy", "PolicyV1", "DTypePolicy"):
        return config.get("name", "float32")
    if kind == "Sequential":
        config["layers"] = _with_input(config.get("layers", []))
    config = {key: _repaired(path, value) for key, value in config.items()}
    _drop(path, kind, config)
    if kind == "BatchNormalization" and isinstance(config.get("axis"), list) and len(config["axis"]) == 1:
        config["axis"] = config["axis"][0]
    shape = config.pop("batch_input_shape", None)
    if kind == "InputLayer" and shape is not None:
        config["batch_shape"] = shape
    rest = {key: _repaired(path, value) for key, value in item.items() if key not in ("class_name", "config")}
    fixed = {**rest, "class_name": kind, "config": config}
    if kind in _MODULES:
        fixed |= {"module": _MODULES[kind], "registered_name": None}
    return fixed


def _with_input(layers: list[Any]) -> list[Any]:
    """A Sequential whose first layer states the shape of its input gets an input layer."""
    first = layers[0] if layers and isinstance(layers[0], dict) else {}
    config = first.get("config")
    if first.get("class_name") == "InputLayer" or not isinstance(config, dict) or "batch_input_shape" not in config:
        return layers
    dtype = "int32" if first.get("class_name") == "Embedding" else "float32"
    stated = {"batch_input_shape": config["batch_input_shape"], "dtype": dtype, "name": f"{config.get('name')}_input"}
    return [{"class_name": "InputLayer", "config": stated}, *layers]


def _drop(path: Path, kind: str, config: dict[str, Any]) -> None:
    neutral = {**_DROPPED, **({"groups": 1} if kind in _UNGROUPED else {})}
    for key, value in neutral.items():
        if key not in config or kind in _KEPT.get(key, ()):
            continue
        if value is not _ANY and config[key] != value:
            raise ModelFileError(
                f"{path}: layer {config.get('name', '?')!r} ({kind}) uses {key}={config[key]!r}, which Keras 3 does "
                "not have; save the model as a SavedModel with the Keras that made it"
            )
        del config[key]
