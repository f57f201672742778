"""Shapes by TensorFlow's own inference: each operator is put into a scratch graph once.

Nothing is run: weights are placeholders there, small constants are constants, so that
TensorFlow's shape functions see the sizes that a graph computes on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcost.errors import ShapeError
from graphcost.frontends.tensorflow.body import NodeDef
from graphcost.frontends.tensorflow.framework import dtype_name, op_definition, tensorflow
from graphcost.frontends.tensorflow.values import Array
from graphcost.ir import TensorSpec

_VARIANT = 21
_RESOURCE = 20


class Scratch:
    """A graph that is thrown away after a walk."""

    def __init__(self) -> None:
        self._tf = tensorflow("the model")
        self.graph = self._tf.Graph()

    def placeholder(self, dtype: int, shape: Sequence[int | None] | None) -> Any | None:
        """A tensor of which only type and (perhaps) shape are known; None for a type that there is not."""
        tf = self._tf
        attr = tf.compat.v1.AttrValue
        try:
            made = self.graph.create_op(
                "Placeholder", [], [tf.dtypes.as_dtype(dtype)],
                attrs={"dtype": attr(type=dtype), "shape": attr(shape=tf.TensorShape(shape).as_proto())},
            )  # fmt: skip
        except (TypeError, ValueError, tf.errors.InvalidArgumentError):
            return None
        return made.outputs[0]

    def constant(self, data: Array, dtype: int) -> Any:
        """A small known tensor."""
        with self.graph.as_default():
            return self._tf.constant(data, dtype=self._tf.dtypes.as_dtype(dtype).base_dtype)

    def infer(self, node: NodeDef, inputs: Sequence[Any]) -> list[Any] | None:
        """The operator's results; None for an operator or a use of it that this TensorFlow does not know.

        Raises ``ShapeError`` where TensorFlow finds that the inputs do not fit.
        """
        definition = op_definition(node.op)
        if definition is None:
            return None
        known = {attr.name for attr in definition.attr}
        attrs = {name: value for name, value in node.attr.items() if name in known}
        if any(value.HasField("func") for value in attrs.values()):
            return None  # calls are opened elsewhere; what is left runs functions of its own accord
        errors = self._tf.errors
        try:
            with self.graph.as_default():
                made = self.graph.create_op(node.op, list(inputs), None, attrs=attrs, op_def=definition)
        except (ValueError, errors.InvalidArgumentError) as error:
            raise ShapeError(f"{node.name} ({node.op}): {_first_line(error)}") from error
        except (TypeError, errors.OpError):
            return None
        return list(made.outputs)


def spec_of(tensor: Any) -> TensorSpec | None:
    """The shape of a scratch tensor, if all of it is known and its type has a size."""
    dtype = dtype_name(tensor.dtype.as_datatype_enum)
    if dtype is None or not tensor.shape.is_fully_defined():
        return None
    return TensorSpec(tuple(int(size) for size in tensor.shape), dtype)


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split("\n", 1)[0].split())
    return text.split(" for '{{node", 1)[0]
