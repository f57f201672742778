"""Small nodes for tables: shapes in, an OpNode out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphcost.ir import OpNode, TensorSpec

Given = tuple[int, ...] | TensorSpec | None
MS = "com.microsoft"


def op(
    op_type: str,
    inputs: Sequence[Given],
    outputs: tuple[int, ...] | TensorSpec | Sequence[Given],
    attrs: Mapping[str, Any] | None = None,
    domain: str = "",
    values: Mapping[int, tuple[int | float, ...]] | None = None,
    dtype: str = "float32",
) -> OpNode:
    """A node named like its operator; a bare shape is ``dtype``, a list of outputs gives several."""
    several = outputs if isinstance(outputs, list) else [outputs]
    return OpNode(
        name=op_type.lower(),
        op_type=op_type,
        inputs=tuple(_spec(given, dtype) for given in inputs),
        outputs=tuple(_spec(given, dtype) for given in several),
        attrs=attrs or {},
        domain=domain,
        values=values or {},
    )


def _spec(given: Given, dtype: str) -> TensorSpec | None:
    return given if given is None or isinstance(given, TensorSpec) else TensorSpec(tuple(given), dtype)


def i64(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "int64")


def i32(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "int32")


def i8(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "int8")


def u8(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "uint8")


def boolean(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "bool")


@dataclass(frozen=True)
class Row:
    """A node and what it must cost: FLOPs and bytes, worked by hand."""

    node: OpNode
    matmul_flops: int
    elementwise_flops: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class BackRow:
    """A node, the inputs whose gradient is needed, and what that must cost."""

    node: OpNode
    wrt: frozenset[int]
    matmul_flops: int
    elementwise_flops: int
    read_bytes: int
    write_bytes: int


def back(node: OpNode, wrt: set[int], *costs: int) -> BackRow:
    return BackRow(node, frozenset(wrt), *costs)
