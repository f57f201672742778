"""What is known of an operator's results beyond their shapes: contents, constness, stored tensors behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, numpy_helper

from graphcost.errors import ModelFileError
from graphcost.frontends.onnx.evaluate import EVALUABLE, canonical, evaluate
from graphcost.frontends.onnx.scope import Scope
from graphcost.frontends.onnx.values import SMALL_NUMEL, Leaf, Value
from graphcost.frontends.onnx.weights import folded_leaves
from graphcost.ir import TensorSpec

Content = npt.NDArray[Any] | None

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_FOLDABLE_DOMAINS = frozenset({"", "com.microsoft"})  # an operator nobody knows may do anything at run time


def with_content(
    node: NodeProto, domain: str, inputs: Sequence[Value | None], results: list[Value], scope: Scope
) -> list[Value]:
    """``results`` with known contents; constant where every input is."""
    present = [value for value in inputs if value is not None]
    if domain == "" and node.op_type in ("Shape", "Size") and present and present[0].spec is not None:
        return [_size_of(node, present[0], present[0].spec, results[0])]
    constant = (
        bool(present)
        and domain in _FOLDABLE_DOMAINS
        and node.op_type not in _RANDOM
        and all(value.constant for value in present)
    )
    stored = constant and all(value.stored for value in present)
    leaves: tuple[Leaf, ...] = folded_leaves(node.op_type, tuple(inputs)) if constant else ()
    if stored and node.op_type == "ConstantOfShape" and results[0].spec is not None:
        spec = results[0].spec
        leaves = (Leaf(scope.key(node.output[0]), spec, spec.numel, spec.size_bytes),)
    contents = _contents(node, domain, inputs, results, scope)
    if not constant and all(content is None for content in contents):
        return results
    return [
        replace(value, data=content, constant=constant, stored=stored, leaves=leaves)
        for value, content in zip(results, contents, strict=True)
    ]


def _contents(
    node: NodeProto, domain: str, inputs: Sequence[Value | None], results: list[Value], scope: Scope
) -> Sequence[Content]:
    unknown: Sequence[None] = [None] * len(results)
    if domain != "" or node.op_type not in EVALUABLE:
        return unknown
    if any(value is not None and value.data is None for value in inputs):
        return unknown
    if any(value.spec is None or value.spec.numel > SMALL_NUMEL for value in results if value.name):
        return unknown
    if node.op_type == "ConstantOfShape":
        return [_filled(node, results[0])]
    made = canonical(node, [v is not None for v in inputs], [bool(name) for name in node.output])
    arrays = evaluate(made, scope.opsets.get("", 1), [v.data if v is not None else None for v in inputs])
    if arrays is None or len(arrays) != sum(1 for name in node.output if name):
        return unknown
    found = iter(arrays)
    return [next(found) if name else None for name in node.output]


def _size_of(node: NodeProto, value: Value, spec: TensorSpec, result: Value) -> Value:
    """Shape and Size: known as soon as the input's shape is, whatever its content."""
    if node.op_type == "Size":
        content = np.array(min(spec.numel, np.iinfo(np.int64).max), np.int64)
    else:
        bounds = {a.name: a.i for a in node.attribute}
        content = np.array(spec.shape, np.int64)[slice(bounds.get("start", 0), bounds.get("end"))]
    made = TensorSpec(tuple(content.shape), "int64")
    return replace(result, spec=made, dtype="int64", data=content, constant=True, stored=value.stored)


def _filled(node: NodeProto, result: Value) -> Content:
    """ConstantOfShape without the reference implementation: light models hold hundreds."""
    if result.spec is None or max(result.spec.shape, default=0) > SMALL_NUMEL:
        return None
    fill = np.zeros(1, np.float32)
    for attribute in node.attribute:
        if attribute.name == "value":
            if attribute.t.data_location == TensorProto.EXTERNAL:  # no other file is opened for one number
                return None
            try:
                fill = numpy_helper.to_array(attribute.t).reshape(-1)[:1]
            except (ValueError, TypeError) as error:
                label = node.name or node.output[0]
                raise ModelFileError(f"{label} (ConstantOfShape): its value is no tensor ({error})") from error
    return np.full(result.spec.shape, fill[0], fill.dtype) if fill.size else None
