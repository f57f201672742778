"""What a file states of its values, beside what inference finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onnx import GraphProto, TypeProto

from graphcost.frontends.onnx.bindings import declared_dims
from graphcost.frontends.onnx.dtypes import DTYPE_NAMES
from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec


def declared(graph: GraphProto) -> dict[str, TypeProto]:
    """Types that a graph states for its values."""
    return {info.name: info.type for info in (*graph.value_info, *graph.output)}


def bound_spec(proto: TypeProto, dims: Mapping[str, int]) -> TensorSpec | None:
    """The declared shape with named sizes bound, or None where one stays open."""
    if not proto.HasField("tensor_type"):
        return None
    sizes = declared_dims(proto)
    dtype = DTYPE_NAMES.get(proto.tensor_type.elem_type)
    if sizes is None or dtype is None:
        return None
    shape = [dims.get(d) if isinstance(d, str) else d for d in sizes]
    if any(size is None for size in shape):
        return None
    return TensorSpec(tuple(size for size in shape if size is not None), dtype)


def with_declared(value: Value, proto: TypeProto) -> Value:
    """A body's formal input: what is passed in, else what the body declares."""
    if value.spec is not None or not proto.HasField("tensor_type"):
        return value
    spec = bound_spec(proto, {})
    dtype = value.dtype or DTYPE_NAMES.get(proto.tensor_type.elem_type)
    return replace(value, spec=spec, dtype=dtype)
