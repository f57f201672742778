"""Keras files -> ``Program``: ``.keras`` and ``.h5``. Only the configuration is read, never the weights."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError
from graphcost.frontends.tensorflow.framework import keras
from graphcost.frontends.tensorflow.keras_repair import repaired
from graphcost.frontends.tensorflow.live import read_keras_model
from graphcost.frontends.tensorflow.program import Program

_PATIENCE_S = 120
"""assumed: reading two attributes takes a second; a damaged file may never end."""

_UNKNOWN_CLASS = re.compile(r"(?:Could not locate (?:class|function)|Unknown layer:) '(?:[^'>]*>)?([^']*)'")
_OPAQUE = ("Lambda", "TFOpLambda", "SlicingOpLambda", "TensorFlowOpLayer", "AddLoss", "AddMetric")
"""Layers that hold Python code or TensorFlow calls instead of a description."""


def read_keras(path: Path) -> Program:
    """A model built anew from its configuration; raises ``ModelFileError`` naming a layer that cannot be."""
    kt = keras(str(path))
    config = _from_archive(path) if path.suffix == ".keras" else _from_hdf5(path)
    for layer in layers(config):
        kind = str(layer.get("class_name"))
        if kind in _OPAQUE:
            raise ModelFileError(
                f"{path}: layer {_name(layer)!r} ({kind}) holds code, which is never run; use a Keras layer class, "
                "or save the model as a SavedModel or to ONNX"
            )
    try:
        model = kt.saving.deserialize_keras_object(config, safe_mode=True)
    except Exception as error:  # Keras raises whatever its layers' constructors raise
        raise ModelFileError(f"{path}: {_reason(error, config)}") from error
    if not hasattr(model, "layers"):
        raise ModelFileError(f"{path}: it describes a {type(model).__name__}, not a Keras model")
    form = "keras" if path.suffix == ".keras" else "keras-h5"
    return read_keras_model(model, path.stem, str(path), form)


def layers(config: Any) -> Iterator[dict[str, Any]]:
    """Every layer in a configuration, nested ones too."""
    stack = [config]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if "class_name" in item and isinstance(item.get("config"), dict):
                yield item
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            stack.extend(reversed(item))


def _name(layer: dict[str, Any]) -> str:
    return str(layer["config"].get("name") or layer.get("name") or "?")


def _from_archive(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read("config.json")
            metadata = archive.read("metadata.json") if "metadata.json" in archive.namelist() else b"{}"
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise ModelFileError(
            f"{path}: not a Keras archive, or not all of it (a zip file that holds config.json)"
        ) from error
    config = _json(path, text)
    return repaired(path, config) if re.search(rb'"keras_version": *"2\.', metadata) else config


_READ_HDF5 = """
import json, sys, h5py
with h5py.File(sys.argv[1], "r") as file:
    found = [file.attrs.get("model_config"), file.attrs.get("keras_version")]
json.dump([each.decode() if isinstance(each, bytes) else each for each in found], sys.stdout)
"""


def _from_hdf5(path: Path) -> dict[str, Any]:
    """The configuration in the file's attributes.

    The HDF5 library can crash on a damaged file, and would take this process with it: a
    process of its own reads the attributes.
    """
    command = [sys.executable, "-P", "-c", _READ_HDF5, str(path.resolve())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True)
        text, version = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        raise ModelFileError(f"{path}: not an HDF5 file, or not all of it") from error
    if text is None:
        raise ModelFileError(f"{path}: it holds weights without a model; save the model with model.save(...)")
    config = _json(path, text)
    # This file format keeps the words of Keras 2, where Keras 3 writes it too.
    return repaired(path, config) if str(version).startswith("2") or "module" not in config else config


def _json(path: Path, text: str | bytes) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: its model configuration is no JSON") from error
    if not isinstance(config, dict) or "class_name" not in config:
        raise ModelFileError(f"{path}: its model configuration names no class")
    return config


def _reason(error: Exception, config: Any) -> str:
    text = " ".join(str(error).split())
    found = _UNKNOWN_CLASS.search(text)
    if found is not None:
        names = (found[1], found[0].partition("'")[2].rstrip("'"))  # alone, and with its package as in HDF5 files
        layer = next((each for each in layers(config) if each.get("class_name") in names), None)
        where = f"layer {_name(layer)!r}: " if layer is not None else ""
        return (
            f"{where}Keras knows no class {found[1]!r}, and code of a model is never run; "
            "load the model in Python and pass it as an object, or save it as a SavedModel"
        )
    return f"Keras cannot build this model: {text.rpartition('Exception encountered: ')[2][:300]}"
