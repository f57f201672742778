"""Small ONNX models from a few words, and what graphcost finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph, parameters, totals
from graphcost.ir import Model, OpCost, OpNode, TensorSpec
from graphcost.sources import load_model

MS = "com.microsoft"
OPSET = 21

node = helper.make_node
Sizes = Sequence[int | str | None] | None
Typed = tuple[str, Sizes]


def value(name: str, shape: Sizes | Typed, dtype: str = "FLOAT") -> ValueInfoProto:
    """A tensor's type; ``("INT64", shape)`` states the element type."""
    if isinstance(shape, tuple):
        dtype, shape = shape
    return helper.make_tensor_value_info(name, TensorProto.DataType.Value(dtype), shape)


def weight(name: str, shape: Sequence[int], dtype: str = "FLOAT") -> TensorProto:
    """A stored tensor without its numbers: sizes are all that is needed."""
    return TensorProto(name=name, dims=shape, data_type=TensorProto.DataType.Value(dtype))


def ints(name: str, numbers: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def floats(name: str, numbers: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.float32), name)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Any],
    outputs: Sequence[str] | Mapping[str, Any],
    stored: Sequence[TensorProto] | Mapping[str, Sequence[int]] = (),
    name: str = "g",
) -> GraphProto:
    """A graph; outputs without a shape are only named."""
    results = list(outputs.items()) if isinstance(outputs, Mapping) else [(key, None) for key in outputs]
    tensors = [weight(key, shape) for key, shape in stored.items()] if isinstance(stored, Mapping) else stored
    return helper.make_graph(
        nodes,
        name,
        [value(key, shape) for key, shape in inputs.items()],
        [value(key, shape) for key, shape in results],
        [tensor for tensor in tensors if isinstance(tensor, TensorProto)],
        sparse_initializer=[tensor for tensor in tensors if isinstance(tensor, SparseTensorProto)],
    )


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Any],
    outputs: Sequence[str] | Mapping[str, Any],
    stored: Sequence[TensorProto] | Mapping[str, Sequence[int]] = (),
    opset: int = OPSET,
    functions: Sequence[FunctionProto] = (),
    domains: Sequence[str] = (MS,),
    ir_version: int = 10,
) -> ModelProto:
    """A model of one graph."""
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(
        graph(nodes, inputs, outputs, stored), opset_imports=imports, functions=functions, ir_version=ir_version
    )


def one(
    op_type: str,
    inputs: Mapping[str, Any],
    stored: Mapping[str, Sequence[int]] | Sequence[TensorProto] = (),
    opset: int = OPSET,
    order: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> ModelProto:
    """A model of one operator; its inputs stand in ``order``, or fed ones first."""
    names = [tensor.name for tensor in stored] if not isinstance(stored, Mapping) else list(stored)
    made = node(op_type, order or [*inputs, *names], outputs, "op", **attributes)
    return model([made], inputs, [name for name in outputs if name], stored, opset)


def ref(name: str, attribute: str, kind: AttributeProto.AttributeType) -> AttributeProto:
    """An attribute that takes the value of the enclosing function's ``attribute``."""
    return AttributeProto(name=name, ref_attr_name=attribute, type=kind)


@dataclass(frozen=True)
class Found:
    """What graphcost found in a model."""

    model: Model
    ops: dict[str, OpNode]
    cost: OpCost
    params: int
    param_bytes: int
    buffers: int
    param_names: tuple[str, ...]
    unknown: dict[str, int]
    free: int

    @property
    def flops(self) -> int:
        return self.cost.matmul_flops

    @property
    def notes(self) -> str:
        return "\n".join(self.model.notes)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of the value called ``name`` that an operator makes."""
        for op in self.ops.values():
            if name in op.output_names:
                spec: TensorSpec | None = op.outputs[op.output_names.index(name)]
                return None if spec is None else spec.shape
        raise LookupError(name)


def find(source: Any, **options: Any) -> Found:
    """Load ``source`` and count it; ``options`` are those of ``LoadOptions``."""
    loaded = load_model(source, LoadOptions(**options))
    built = build_graph(loaded)
    found = totals(built)
    return Found(
        loaded,
        {op.name: op for op in loaded.nodes},
        found.cost,
        found.params,
        found.param_bytes,
        found.buffers,
        tuple(parameters(built)),
        {entry.op_type: entry.count for entry in found.coverage.unknown},
        found.coverage.free,
    )
