"""Compute with small known values: the Shape -> Gather -> Concat arithmetic of exporters.

The operators' meaning is onnx's own reference implementation; what is decided here is
only which operators are safe and small enough to run. No code of the model is run.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

Array = npt.NDArray[np.generic]

EVALUABLE = frozenset(
    {
        "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Compress",
        "Concat", "ConstantOfShape", "Cos", "CumSum", "Div", "Equal", "Exp", "Expand", "EyeLike", "Flatten",
        "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity",
        "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot",
        "Or", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
        "ReduceSum", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Shape", "Sign", "Sin",
        "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose",
        "Trilu", "Unsqueeze", "Where", "Xor",
    }
)  # fmt: skip
"""Operators that turn sizes into sizes. All are total on small arrays and cannot allocate beyond their output."""


def evaluate(node: NodeProto, version: int, inputs: Sequence[Array | None]) -> list[Array] | None:
    """Run one canonical ``node`` (inputs ``i0, i1, ...``) of the standard's opset ``version``.

    None where the reference implementation cannot: the value then stays unknown.
    """
    feeds = {f"i{i}": array for i, array in enumerate(inputs) if array is not None}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = _evaluator(node.SerializeToString(deterministic=True), version).run(None, feeds)
    except Exception:  # reference operators raise anything at all on odd input; the value stays unknown
        return None
    return [np.asarray(result) for result in results]


@lru_cache(maxsize=2048)
def _evaluator(serialized: bytes, version: int) -> Any:
    from onnx.reference import ReferenceEvaluator  # 20 ms, and only models with computed sizes need it

    node = NodeProto.FromString(serialized)
    graph = GraphProto(name="one", node=[node])
    graph.input.extend(ValueInfoProto(name=name) for name in node.input if name)
    graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
    # A model, not the bare node: only a model carries the opset that the node is written in.
    model = ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", version)])
    return ReferenceEvaluator(model)


def canonical(node: NodeProto, inputs_present: Sequence[bool], outputs_present: Sequence[bool]) -> NodeProto:
    """``node`` with values named by position, so that equal operators are equal bytes."""
    made = helper.make_node(
        node.op_type,
        [f"i{i}" if there else "" for i, there in enumerate(inputs_present)],
        [f"o{i}" if there else "" for i, there in enumerate(outputs_present)],
        domain=node.domain,
    )
    made.attribute.extend(sorted(node.attribute, key=lambda attribute: attribute.name))
    return made
