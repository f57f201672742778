"""ONNX element types and the neutral dtype names."""

from __future__ import annotations

from onnx import TensorProto

DTYPE_NAMES: dict[int, str] = {
    number: {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())
    for name, number in TensorProto.DataType.items()
    if name != "UNDEFINED"
}
"""TensorProto.DataType -> dtype name of ``graphcost.ir.BITS``."""

DTYPE_NUMBERS: dict[str, int] = {name: number for number, name in DTYPE_NAMES.items()}
