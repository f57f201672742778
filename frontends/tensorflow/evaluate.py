"""Compute with small known values: the Shape -> StridedSlice -> Pack arithmetic of exporters.

The operators' meaning is TensorFlow's own kernels; what is decided here is only which
operators are safe and small enough to run. No code of the model is run.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from graphcost.frontends.tensorflow.body import NodeDef, arg_length
from graphcost.frontends.tensorflow.framework import op_definition
from graphcost.frontends.tensorflow.values import Array

EVALUABLE = frozenset(
    {
        "Abs", "Add", "AddN", "AddV2", "All", "Any", "ArgMax", "ArgMin", "BatchToSpaceND", "BroadcastArgs",
        "BroadcastTo", "Cast", "Ceil", "ClipByValue", "Concat", "ConcatV2", "Cumprod", "Cumsum", "Div", "DivNoNan",
        "Equal", "Exp", "ExpandDims", "Fill", "Floor", "FloorDiv", "FloorMod", "Gather", "GatherNd", "GatherV2",
        "Greater", "GreaterEqual", "Invert", "InvertPermutation", "Less", "LessEqual", "LinSpace", "Log",
        "LogicalAnd", "LogicalNot", "LogicalOr", "Max", "Maximum", "Mean", "Min", "Minimum", "Mod", "Mul", "Neg",
        "NotEqual", "OneHot", "OnesLike", "Pack", "Pad", "PadV2", "Pow", "Prod", "Range", "RealDiv", "Reciprocal",
        "Relu", "Reshape", "Reverse", "ReverseV2", "Rint", "Round", "ScatterNd", "Select", "SelectV2", "Sign",
        "Slice", "Split", "SplitV", "Sqrt", "Square", "Squeeze", "StridedSlice", "Sub", "Sum", "Tile", "Transpose",
        "TruncateDiv", "TruncateMod", "Unpack", "Where", "ZerosLike",
    }
)  # fmt: skip
"""Operators that turn sizes into sizes. None reads or writes anything outside its inputs."""


def evaluate(node: NodeDef, inputs: Sequence[Array]) -> list[Array] | None:
    """Run one operator on known inputs; None where its kernel cannot: the value then stays unknown."""
    import tensorflow as tf

    definition = op_definition(node.op)
    function = getattr(tf.raw_ops, node.op, None)
    if definition is None or function is None:
        return None
    names = _argument_names(node.op)
    arguments: dict[str, Any] = {}
    rest = list(inputs)
    for arg in definition.input_arg:
        if arg.number_attr or arg.type_list_attr:
            count = arg_length(node, arg)
            arguments[names[arg.name]], rest = rest[:count], rest[count:]
        elif rest:
            arguments[names[arg.name]] = rest.pop(0)
    for attr in definition.attr:
        if attr.name in node.attr and attr.name in names:
            arguments[names[attr.name]] = _plain(node.attr[attr.name])
    try:
        with tf.init_scope(), tf.device("/CPU:0"):
            results = function(**arguments)
    except (ValueError, TypeError, tf.errors.OpError):
        return None
    listed = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(result) for result in listed]


@lru_cache(maxsize=256)
def _argument_names(op_type: str) -> dict[str, str]:
    """Names in the operator's definition -> names in Python, which differ for some but keep their order.

    Attributes that follow from the inputs (their types and numbers) are no arguments in Python.
    """
    import tensorflow as tf

    definition = op_definition(op_type)
    assert definition is not None
    inferred = {
        name for arg in definition.input_arg for name in (arg.type_attr, arg.number_attr, arg.type_list_attr) if name
    }
    defined = [arg.name for arg in definition.input_arg]
    defined += [attr.name for attr in definition.attr if attr.name not in inferred]
    offered = [name for name in inspect.signature(getattr(tf.raw_ops, op_type)).parameters if name != "name"]
    same = {name: name for name in defined if name in offered}
    renamed = zip((n for n in defined if n not in same), (n for n in offered if n not in same), strict=False)
    return same | dict(renamed)


def _plain(attr: Any) -> Any:
    import tensorflow as tf

    which = attr.WhichOneof("value")
    if which == "type":
        return tf.dtypes.as_dtype(attr.type)
    if which == "shape":
        return tf.TensorShape(attr.shape)
    if which == "list":
        listed = attr.list
        return list(listed.i) or list(listed.f) or list(listed.s) or list(listed.b)
    return getattr(attr, which) if which else None
