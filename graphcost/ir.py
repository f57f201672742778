"""The neutral vocabulary: tensors, parameters, operators, costs.

Every frontend speaks it, every rule reads it; operator names are those of the
ONNX standard. Values are frozen; what can be derived is a property.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from types import MappingProxyType
from typing import Any

MAC_FLOPS = 2
"""One multiply-accumulate is two floating-point operations."""

BITS: Mapping[str, int] = MappingProxyType(
    {
        "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
        "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8,
        "float8e8m0": 8, "float6e2m3": 6, "float6e3m2": 6, "float4e2m1": 4,
        "int64": 64, "int32": 32, "int16": 16, "int8": 8, "int4": 4, "int2": 2,
        "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8, "uint4": 4, "uint2": 2,
        "bool": 8, "complex64": 64, "complex128": 128,
        "string": 0,  # assumed: strings never reach the device
    }
)  # fmt: skip
"""Bits an element takes; sub-byte types are packed. Names: ONNX TensorProto.DataType, lower case."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor's shape and dtype.

    >>> TensorSpec((2, 3), "int4").size_bytes  # 24 bits
    3
    """

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def numel(self) -> int:
        """Elements; 1 for a scalar."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes, packed, rounded up."""
        return -(-self.numel * BITS[self.dtype] // 8)

    @property
    def is_float(self) -> bool:
        """Whether gradients can flow through it."""
        return "float" in self.dtype or self.dtype.startswith("complex")


class ParamKind(StrEnum):
    """What a constant tensor is to the model."""

    WEIGHT = "weight"
    BUFFER = "buffer"  # batch-norm running statistics: stored, never trained


@dataclass(frozen=True, slots=True)
class Param:
    """A stored tensor that the model uses. Identity is ``name``: a tied weight is one Param.

    ``numel`` and ``stored_bytes`` may differ from ``spec`` where the file packs or
    compresses (4-bit weights in bytes, sparse initializers). ``sparse`` tables have their
    gradients exchanged and applied by touched rows.
    """

    name: str
    spec: TensorSpec
    numel: int
    stored_bytes: int
    kind: ParamKind = ParamKind.WEIGHT
    trainable: bool = True
    sparse: bool = False

    @classmethod
    def dense(cls, name: str, spec: TensorSpec, kind: ParamKind = ParamKind.WEIGHT, trainable: bool = True) -> Param:
        """A parameter stored as it is used."""
        return cls(name, spec, spec.numel, spec.size_bytes, kind, trainable and kind is ParamKind.WEIGHT)


@dataclass(frozen=True, slots=True)
class OpNode:
    """One operator of the graph.

    ``inputs[i]`` is None for an absent optional input. ``input_names`` and
    ``output_names`` are the values' names, which make the edges. ``params`` maps an
    input's index to the stored tensors behind it (through transposes, casts and
    dequantisation). ``values`` holds small inputs known at analysis time, flattened
    (axes, trip counts, scales). ``repeat`` is how often one step runs the operator
    (loop trips); ``trips`` in shapes are not multiplied. ``module`` is the dotted path
    of the enclosing block.
    """

    name: str
    op_type: str
    inputs: tuple[TensorSpec | None, ...]
    outputs: tuple[TensorSpec | None, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    params: tuple[tuple[int, Param], ...] = ()
    values: Mapping[int, tuple[int | float, ...]] = field(default_factory=dict)
    repeat: int = 1
    module: str = ""
    origin: str = ""

    def spec(self, index: int) -> TensorSpec | None:
        """Input ``index``, or None where it is absent or not given."""
        return self.inputs[index] if index < len(self.inputs) else None

    def params_at(self, index: int) -> tuple[Param, ...]:
        """The stored tensors behind input ``index``; several where they are joined there (directions of an LSTM)."""
        return tuple(param for at, param in self.params if at == index)

    def require(self, index: int) -> TensorSpec:
        """Input ``index``; raises ``LookupError`` where it is absent (the operator is malformed)."""
        found = self.spec(index)
        if found is None:
            raise LookupError(f"{self.name} ({self.op_type}): input {index} is missing")
        return found

    @property
    def out(self) -> TensorSpec:
        """The first output that is there."""
        for spec in self.outputs:
            if spec is not None:
                return spec
        raise LookupError(f"{self.name} ({self.op_type}): no output has a known shape")

    @property
    def kind(self) -> str:
        """Operator name with its domain where that is not the standard's: ``com.microsoft.Attention``."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type


@dataclass(frozen=True, slots=True)
class OpCost:
    """What an operator asks of any device: exact integers, before hardware.

    ``matmul_flops`` are the contractions'; ``elementwise_flops`` everything else's.
    Costs add, and multiply by a count.

    >>> OpCost(matmul_flops=6) + 2 * OpCost(read_bytes=4)
    OpCost(matmul_flops=6, elementwise_flops=0, read_bytes=8, write_bytes=0)
    """

    matmul_flops: int = 0
    elementwise_flops: int = 0
    read_bytes: int = 0
    write_bytes: int = 0

    @property
    def flops(self) -> int:
        """All floating-point operations."""
        return self.matmul_flops + self.elementwise_flops

    @property
    def bytes(self) -> int:
        """All memory traffic, every operator reading and writing its tensors once."""
        return self.read_bytes + self.write_bytes

    def __add__(self, other: OpCost) -> OpCost:
        return OpCost(
            self.matmul_flops + other.matmul_flops,
            self.elementwise_flops + other.elementwise_flops,
            self.read_bytes + other.read_bytes,
            self.write_bytes + other.write_bytes,
        )

    def __mul__(self, count: int) -> OpCost:
        return OpCost(
            self.matmul_flops * count,
            self.elementwise_flops * count,
            self.read_bytes * count,
            self.write_bytes * count,
        )

    __rmul__ = __mul__


class Phase(StrEnum):
    """A part of the training step."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


class BatchSource(StrEnum):
    """Where the batch size came from."""

    FILE = "file"
    OPTION = "option"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Model:
    """What a frontend hands over: operators in execution order, before any cost.

    ``nodes`` are live (they reach an output) and topologically ordered. ``outputs``
    are value names. ``batch`` is None where the model has no batch dimension that
    anyone could tell. ``folded`` counts operators that only see constants and run
    once, not every step; ``notes`` are what a reader must know (dead operators,
    missing external data, assumptions). ``untaken_params`` belong to branches that are
    stored with the model but not run.
    """

    name: str
    source: str
    format: str
    nodes: tuple[OpNode, ...]
    inputs: Mapping[str, TensorSpec]
    outputs: tuple[str, ...]
    batch: int | None = None
    batch_source: BatchSource = BatchSource.FILE
    bindings: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    folded: int = 0
    untaken_params: tuple[Param, ...] = ()
