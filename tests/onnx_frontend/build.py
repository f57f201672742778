"""Small ONNX models in a few words, and what graphcost counts in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from graphcost.frontends.options import LoadOptions
from graphcost.graph import GraphTotals, build_graph, parameters, totals
from graphcost.ir import Model, OpNode, Param
from graphcost.sources import load_model

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
MS = "com.microsoft"
OPSET = 21

op = helper.make_node
Dims = Sequence[int | str | None] | None


def tensor(name: str, dims: Dims, dtype: int = F32) -> ValueInfoProto:
    """A tensor's declared type; ``dims`` None leaves even the rank open."""
    return helper.make_tensor_value_info(name, dtype, dims)


def zeros(name: str, *shape: int, dtype: str = "float32") -> TensorProto:
    return numpy_helper.from_array(np.zeros(shape, dtype), name)


def ints(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def scalar(name: str, value: int | bool) -> TensorProto:
    return numpy_helper.from_array(np.array(value, np.bool_ if isinstance(value, bool) else np.int64), name)


def bare(name: str, *shape: int, dtype: int = F32) -> TensorProto:
    """A stored tensor that states its shape and holds no numbers."""
    return TensorProto(name=name, dims=shape, data_type=dtype)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto | str],
    stored: Sequence[TensorProto] = (),
    name: str = "g",
) -> GraphProto:
    """A graph; an output given by name alone has no declared type."""
    ends = [ValueInfoProto(name=out) if isinstance(out, str) else out for out in outputs]
    return helper.make_graph(nodes, name, inputs, ends, stored)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto | str] = ("y",),
    stored: Sequence[TensorProto] = (),
    *,
    opset: int = OPSET,
    functions: Sequence[FunctionProto] = (),
    domains: Sequence[str] = (MS,),
    ir_version: int = 10,
) -> ModelProto:
    """A model of one graph, which imports the standard and ``domains``."""
    return helper.make_model(
        graph(nodes, inputs, outputs, stored),
        opset_imports=[helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)],
        functions=list(functions),
        ir_version=ir_version,
    )


def function(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[NodeProto],
    *,
    attributes: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
    opset: int = OPSET,
    domain: str = "local",
) -> FunctionProto:
    """A function of the model, in domain ``local``."""
    made: FunctionProto = helper.make_function(
        domain, name, inputs, outputs, nodes,
        [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)], attributes,
        [helper.make_attribute(key, value) for key, value in (defaults or {}).items()],
    )  # fmt: skip
    return made


@dataclass(frozen=True)
class Counted:
    """A model and its totals."""

    model: Model
    totals: GraphTotals
    weights: Mapping[str, Param]

    @property
    def flops(self) -> int:
        return self.totals.cost.matmul_flops

    @property
    def notes(self) -> str:
        return "; ".join(self.model.notes)

    @property
    def unknown(self) -> dict[str, int]:
        return {entry.op_type: entry.count for entry in self.totals.coverage.unknown}

    @property
    def found(self) -> tuple[int, int, int]:
        """(matmul FLOPs, parameters, bytes of the parameters)."""
        return self.flops, self.totals.params, self.totals.param_bytes

    def node(self, name: str) -> OpNode:
        """The operator called ``name``."""
        return next(node for node in self.model.nodes if node.name == name)

    def shape(self, value: str) -> tuple[int, ...] | None:
        """The shape of a value that an operator makes; None where it is not known."""
        for node in self.model.nodes:
            for name, spec in zip(node.output_names, node.outputs, strict=True):
                if name == value:
                    return None if spec is None else spec.shape
        raise LookupError(value)


def count(source: Any, **options: Any) -> Counted:
    """Load and count; ``options`` are those of ``LoadOptions``."""
    loaded = load_model(source, LoadOptions(**options))
    built = build_graph(loaded)
    return Counted(loaded, totals(built), parameters(built))
