"""The one door to TensorFlow and Keras: imported late, named where missing."""

from __future__ import annotations

from typing import Any

from graphcost.errors import UsageError
from graphcost.ir import BITS

_INSTALL = "install it with: pip install 'graphcost[tensorflow]'"

# TensorFlow's names that differ from ONNX's; quantised integers are stored as plain ones.
_RENAMED = {
    "half": "float16", "qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32",
}  # fmt: skip


def tensorflow(what: str) -> Any:
    """The ``tensorflow`` module; raises ``UsageError`` naming the extra where it is not installed."""
    try:
        import tensorflow
    except ImportError as error:
        raise UsageError(f"{what}: reading it needs TensorFlow, which is not installed; {_INSTALL}") from error
    return tensorflow


def keras(what: str) -> Any:
    """The ``keras`` module on TensorFlow; raises ``UsageError`` where that is not to be had."""
    tensorflow(what)
    try:
        import keras
    except ImportError as error:
        raise UsageError(f"{what}: reading it needs Keras 3, which is not installed; {_INSTALL}") from error
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise UsageError(f"{what}: Keras runs on {backend!r} here; set KERAS_BACKEND=tensorflow to read this model")
    return keras


def op_definition(op_type: str) -> Any | None:
    """TensorFlow's ``OpDef`` of an operator, or None for one that this TensorFlow does not know."""
    from tensorflow.python.framework import op_def_registry  # the only registry Python can ask

    return op_def_registry.get(op_type)


def dtype_name(enum: int) -> str | None:
    """A ``DataType`` number as ``graphcost.ir`` names it; None for resources, variants and the like."""
    import tensorflow

    try:
        name: str = tensorflow.dtypes.as_dtype(enum).base_dtype.name
    except TypeError:
        return None
    name = _RENAMED.get(name, name)
    name = name.replace("float8_", "float8").replace("float4_", "float4")
    return name if name in BITS else None
