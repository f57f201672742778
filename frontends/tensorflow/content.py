"""Constness and content of results: what is the same at every step, what is small and known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graphcost.frontends.onnx.weights import folded_leaves
from graphcost.frontends.tensorflow.body import NodeDef
from graphcost.frontends.tensorflow.emit import FOLDED_AS, onnx_value
from graphcost.frontends.tensorflow.evaluate import EVALUABLE, evaluate
from graphcost.frontends.tensorflow.framework import dtype_name, op_definition
from graphcost.frontends.tensorflow.values import SMALL_NUMEL, Array, Leaf, Value
from graphcost.ir import TensorSpec

if TYPE_CHECKING:
    from graphcost.frontends.tensorflow.walk import Walk

_METADATA = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_AXIS_FIRST = frozenset({"Split", "Concat"})


def with_content(walk: Walk, node: NodeDef, inputs: list[Value], results: list[Value]) -> list[Value]:
    """``results`` with their content, where it follows from known inputs, and the tensors they carry."""
    arrays = _content(node, inputs, results)
    if arrays is not None and len(arrays) == len(results):
        leaves = _leaves(node, inputs)
        return [
            walk.known(value.name, value.dtype, array, leaves=leaves)
            for value, array in zip(results, arrays, strict=True)
        ]
    definition = op_definition(node.op)
    if definition is None or definition.is_stateful or not all(value.constant for value in inputs):
        return results  # stateful operators draw random numbers or read what others write
    leaves = _leaves(node, inputs)
    return [replace(value, constant=True, leaves=leaves) for value in results]


def _content(node: NodeDef, inputs: list[Value], results: list[Value]) -> list[Array] | None:
    if node.op in _METADATA and results:
        kind = dtype_name(results[0].dtype) or "int32"
        specs = [value.spec for value in inputs if value.spec is not None]
        return (
            [np.asarray(_metadata(node.op, spec), dtype=kind) for spec in specs]
            if len(specs) == len(inputs)
            else None
        )
    if node.op not in EVALUABLE or not inputs:
        return None
    arrays = [value.data for value in inputs if value.data is not None]
    small = all(value.spec is not None and value.spec.numel <= SMALL_NUMEL for value in results)
    return evaluate(node, arrays) if small and len(arrays) == len(inputs) else None


def _metadata(op_type: str, spec: TensorSpec) -> tuple[int, ...] | int:
    if op_type == "Size":
        return spec.numel
    return len(spec.shape) if op_type == "Rank" else spec.shape


def _leaves(node: NodeDef, inputs: list[Value]) -> tuple[Leaf, ...]:
    if node.op in _METADATA:
        return ()
    if node.op in _AXIS_FIRST:
        inputs = inputs[1:]
    return folded_leaves(FOLDED_AS.get(node.op, node.op), tuple(onnx_value(value) for value in inputs))
