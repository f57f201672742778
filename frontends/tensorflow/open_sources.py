"""Where values come from: constants, variables, placeholders, calls of library functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcost.errors import ModelFileError
from graphcost.frontends.tensorflow.body import NodeDef
from graphcost.frontends.tensorflow.emit import Op
from graphcost.frontends.tensorflow.framework import dtype_name
from graphcost.frontends.tensorflow.values import SMALL_NUMEL, Value, Variable
from graphcost.frontends.tensorflow.walk import Scope, Walk, opens
from graphcost.ir import TensorSpec


def shape_of(proto: Any) -> tuple[int, ...] | None:
    """A ``TensorShapeProto`` as sizes; None where it leaves any open."""
    if proto.unknown_rank or any(dim.size < 0 for dim in proto.dim):
        return None
    return tuple(dim.size for dim in proto.dim)


@opens("Const", "HostConst")
def constant(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Small content is read; of weights, only the shape."""
    proto = node.attr["value"].tensor
    shape, name = shape_of(proto.tensor_shape) or (), f"{scope.path}{node.name}:0"
    dtype = proto.dtype or node.attr["dtype"].type
    named = dtype_name(dtype)
    if named is None:
        raise ModelFileError(f"{node.name} (Const): its element type {dtype} is no tensor's")
    spec = TensorSpec(shape, named)
    leaves = walk.stored(f"{scope.owner}/{node.name}" if scope.owner else node.name, spec)
    walk.folded += scope.repeat > 0
    if spec.numel <= SMALL_NUMEL and named != "string":
        import tensorflow as tf

        try:
            return [walk.known(name, dtype, np.asarray(tf.make_ndarray(proto)), leaves=leaves)]
        except (ValueError, TypeError) as error:
            raise ModelFileError(f"{node.name} (Const): its content does not fit shape {list(shape)}") from error
    return [walk.fresh(name, dtype, shape, constant=True, leaves=leaves)]


@opens("VarHandleOp")
def variable_handle(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """A resource that points to a variable; its content stays in the checkpoint."""
    return [Value(f"{scope.path}{node.name}:0", constant=True, variable=_variable(walk, node, scope))]


@opens("VariableV2", "Variable", "AutoReloadVariable", "TemporaryVariable")
def variable(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """TF 1: the variable's content itself."""
    return [_content(walk, _variable(walk, node, scope), f"{scope.path}{node.name}:0")]


@opens("ReadVariableOp", "ResourceGatherRead")
def read_variable(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The content of the variable that a handle points to."""
    found, name = inputs[0].variable, f"{scope.path}{node.name}:0"
    if found is None:
        return [walk.fresh(name, node.attr["dtype"].type, None)]
    return [_content(walk, found, name)]


@opens("ResourceGather", "ResourceGatherNd")
def gather_variable(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Rows of a variable: the table is read where it lies."""
    found, name = inputs[0].variable, f"{scope.path}{node.name}:0"
    if found is None or found.spec is None or inputs[1].spec is None:
        result = walk.fresh(name, node.attr["dtype"].type, None)
        walk.emit(node, inputs, [result], scope)
        return [result]
    table = _content(walk, found, f"{inputs[0].name}.table")
    ids = inputs[1].spec.shape
    if node.op == "ResourceGatherNd":
        shape = (*ids[:-1], *table.spec.shape[ids[-1] if ids else 0 :]) if table.spec else ()
    else:
        shape = (*ids, *found.spec.shape[1:])
    result = walk.fresh(name, found.dtype, shape)
    op = Op(node, (table, inputs[1]), (result,), scope.path, scope.repeat, walk.nodes)
    op.emit("GatherND" if node.op == "ResourceGatherNd" else "Gather", op.inputs, axis=0)
    return [result]


@opens("VariableShape")
def variable_shape(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The shape of the variable that a handle points to."""
    found, name = inputs[0].variable, f"{scope.path}{node.name}:0"
    dtype = node.attr["out_type"].type or 3
    if found is None or found.spec is None:
        return [walk.fresh(name, dtype, None)]
    return [walk.known(name, dtype, np.asarray(found.spec.shape, dtype=dtype_name(dtype)))]


@opens("PlaceholderWithDefault")
def with_default(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Fed only where the caller wishes: else what stands there (dropout rates, training flags)."""
    return inputs[:1]


@opens("IdentityN")
def identities(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """All inputs, forwarded."""
    return inputs


@opens("Placeholder", "PlaceholderV2")
def placeholder(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """A placeholder that is no input: what a traced function captured and nobody fed."""
    return [walk.fresh(f"{scope.path}{node.name}:0", node.attr["dtype"].type, shape_of(node.attr["shape"].shape))]


@opens("PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "TPUPartitionedCall")
def call(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The function's operators in the call's place."""
    body = walk.function(node.attr["f"].func.name, node)
    return walk.call(body, inputs, node, scope)


def _variable(walk: Walk, node: NodeDef, scope: Scope) -> Variable:
    shared = node.attr["shared_name"].s.decode("utf-8", "replace") if "shared_name" in node.attr else ""
    name = shared or node.name
    if name in walk.variables:
        return walk.variables[name]
    if node.name in walk.variables:
        return walk.variables[node.name]
    dtype = node.attr["dtype"].type
    named, shape = dtype_name(dtype), shape_of(node.attr["shape"].shape)
    spec = None if named is None or shape is None else TensorSpec(shape, named)
    return Variable(name, spec, dtype)


def _content(walk: Walk, variable: Variable, name: str) -> Value:
    shape = None if variable.spec is None else variable.spec.shape
    leaves = walk.stored(variable.name, variable.spec, trained=variable.trainable)
    return walk.fresh(name, variable.dtype, shape, constant=shape is not None, leaves=leaves)
