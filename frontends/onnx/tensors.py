"""Stored tensors: what an initializer or Constant says of itself, and small contents."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, SparseTensorProto, TensorProto, numpy_helper

from graphcost.errors import ModelFileError, UsageError
from graphcost.frontends.onnx.dtypes import DTYPE_NAMES
from graphcost.frontends.onnx.values import SMALL_NUMEL, Leaf, Value
from graphcost.ir import TensorSpec

EVALUATED = frozenset(
    {"float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64",
     "uint8", "uint16", "uint32", "uint64"}
)  # fmt: skip
"""Element types that numpy computes with."""


@dataclass(slots=True)
class ExternalFiles:
    """Side files of weights: looked for, hardly ever opened.

    Sizes come from the graph, so absent files are only a note. Small integer tensors
    (they may be shapes) are read, from inside the model's folder only.
    """

    folder: Path | None
    absent: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)

    def resolve(self, tensor: TensorProto) -> tuple[Path, int, int | None] | None:
        """(file, offset, length) of ``tensor``'s payload, or None where it is not to be opened."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            self.absent.add(location)
            return None
        root = self.folder.resolve()
        try:
            path = (root / location).resolve()
            if not path.is_relative_to(root):
                self.outside.add(location)
                return None
            if not path.is_file():
                self.absent.add(location)
                return None
            length = int(entries["length"]) if "length" in entries else None
            return path, int(entries.get("offset", 0)), length
        except (ValueError, OSError):  # NUL in a path, a name too long, a number that is none
            self.absent.add(location)
            return None

    def notes(self) -> list[str]:
        """What a reader of the result must know about the side files."""
        found = []
        if self.absent:
            names = ", ".join(sorted(self.absent))
            found.append(f"external data {names} is absent; sizes are those the graph states")
        if self.outside:
            names = ", ".join(sorted(self.outside))
            found.append(f"external data {names} lies outside the model's folder and was not opened")
        return found


def tensor_value(tensor: TensorProto, name: str, key: str, external: ExternalFiles) -> Value:
    """A stored dense tensor as a value; ``key`` identifies it across scopes."""
    spec = _spec(tensor, name)
    leaf = Leaf(key, spec, spec.numel, spec.size_bytes)
    data = _content(tensor, spec, name, external)
    return Value(name, spec, spec.dtype, data, constant=True, stored=True, leaves=(leaf,))


def sparse_value(sparse: SparseTensorProto, name: str, key: str) -> Value:
    """A sparse initializer: its dense shape, with the bytes of stored values and indices."""
    values = _spec(sparse.values, name)
    dims = tuple(sparse.dims)
    if any(d < 0 for d in dims):
        raise ModelFileError(f"sparse initializer {name!r} has a negative size in {list(dims)}")
    spec = TensorSpec(dims, values.dtype)
    stored_bytes = values.size_bytes + _spec(sparse.indices, name).size_bytes
    leaf = Leaf(key, spec, spec.numel, stored_bytes)
    return Value(name, spec, spec.dtype, None, constant=True, stored=True, leaves=(leaf,))


def constant_value(node: NodeProto, name: str, key: str, external: ExternalFiles) -> Value:
    """The output of a Constant operator, any of its attribute forms."""
    for attribute in node.attribute:
        match attribute.name:
            case "value":
                return tensor_value(attribute.t, name, key, external)
            case "sparse_value":
                return sparse_value(attribute.sparse_tensor, name, key)
            case "value_float" | "value_int":
                scalar = attribute.f if attribute.name == "value_float" else attribute.i
                return known(name, np.array(scalar, _LITERALS[attribute.name]), stored=True, key=key)
            case "value_floats":
                return known(name, np.array(attribute.floats, np.float32), stored=True, key=key)
            case "value_ints":
                return known(name, np.array(attribute.ints, np.int64), stored=True, key=key)
            case "value_string" | "value_strings":
                count = len(attribute.strings) if attribute.name == "value_strings" else 1
                shape = (count,) if attribute.name == "value_strings" else ()
                return Value(name, TensorSpec(shape, "string"), "string", constant=True, stored=True)
    raise ModelFileError(f"Constant {node.name or name!r} has no value attribute")


_LITERALS = {"value_float": np.float32, "value_int": np.int64}


def known(name: str, data: npt.NDArray[np.generic], *, stored: bool, key: str | None = None) -> Value:
    """A value whose content is known; with ``key`` it is a stored tensor of its own."""
    spec = TensorSpec(tuple(int(d) for d in data.shape), str(data.dtype))
    leaves = (Leaf(key, spec, spec.numel, spec.size_bytes),) if key is not None else ()
    small = data if data.size <= SMALL_NUMEL else None
    return Value(name, spec, spec.dtype, small, constant=True, stored=stored, leaves=leaves)


def empty_content(spec: TensorSpec) -> npt.NDArray[np.generic] | None:
    """What an input without elements holds: nothing, and that is known."""
    plain = spec.numel == 0 and spec.dtype in EVALUATED and max(spec.shape) <= SMALL_NUMEL
    return np.zeros(spec.shape, spec.dtype) if plain else None


def given_content(name: str, spec: TensorSpec, given: tuple[float, ...]) -> npt.NDArray[np.generic]:
    """What the user gave for input ``name``, in its shape; one number fills any shape."""
    if spec.dtype not in EVALUATED and spec.dtype != "bfloat16":
        raise UsageError(f"--input-value {name}: the input is of {spec.dtype}; only plain numbers can be given")
    try:
        with np.errstate(all="raise"):
            data = np.array(given).astype("float32" if spec.dtype == "bfloat16" else spec.dtype)
    except (ValueError, TypeError, OverflowError, FloatingPointError) as error:
        raise UsageError(f"--input-value {name}: {list(given)} are no numbers of {spec.dtype}") from error
    if data.size not in (1, spec.numel):
        raise UsageError(
            f"--input-value {name}: {data.size} numbers given, shape {list(spec.shape)} takes {spec.numel}, "
            "or one for all"
        )
    return data.reshape(spec.shape) if data.size == spec.numel else np.broadcast_to(data.reshape(()), spec.shape)


def _spec(tensor: TensorProto, name: str) -> TensorSpec:
    dtype = DTYPE_NAMES.get(tensor.data_type)
    if dtype is None:
        raise ModelFileError(f"tensor {name!r} has element type {tensor.data_type}, which ONNX does not define")
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        raise ModelFileError(f"tensor {name!r} has a negative size in {list(dims)}")
    return TensorSpec(dims, dtype)


def _content(
    tensor: TensorProto, spec: TensorSpec, name: str, external: ExternalFiles
) -> npt.NDArray[np.generic] | None:
    """The numbers of a small tensor, or None: large, skipped, absent, or not evaluated."""
    is_external = tensor.data_location == TensorProto.EXTERNAL
    where = external.resolve(tensor) if is_external else None
    numel = prod(spec.shape)
    if not is_external and tensor.raw_data and len(tensor.raw_data) != spec.size_bytes:
        raise ModelFileError(
            f"tensor {name!r}: its data does not fill shape {list(spec.shape)} of {spec.dtype} "
            f"({len(tensor.raw_data)} bytes of {spec.size_bytes})"
        )
    if numel > SMALL_NUMEL or spec.dtype not in EVALUATED:
        return None
    try:
        if is_external:
            if where is None or spec.dtype not in {"int32", "int64"}:
                return None
            path, offset, _ = where
            with path.open("rb") as file:
                file.seek(offset)
                raw = file.read(spec.size_bytes)
            return np.frombuffer(raw, dtype=spec.dtype).reshape(spec.shape)
        if numel and not _has_payload(tensor):
            return None
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OSError) as error:
        raise ModelFileError(
            f"tensor {name!r}: its data does not fill shape {list(spec.shape)} of {spec.dtype} ({error})"
        ) from error


def _has_payload(tensor: TensorProto) -> bool:
    return bool(
        tensor.raw_data or tensor.float_data or tensor.int32_data or tensor.int64_data
        or tensor.double_data or tensor.uint64_data
    )  # fmt: skip
