"""Sequences of tensors, whose elements are followed one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from onnx import NodeProto

from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec

if TYPE_CHECKING:
    from graphcost.frontends.onnx.interpreter import Interpreter
    from graphcost.frontends.onnx.scope import Scope

Handler = Callable[["Interpreter", NodeProto, list[Value | None], "Scope"], list[Value]]


def _items(value: Value | None) -> tuple[Value, ...] | None:
    return None if value is None else value.items


def _made(node: NodeProto, scope: Scope, items: tuple[Value, ...] | None) -> list[Value]:
    return [Value(scope.path + node.output[0], items=items)]


def _construct(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    return _made(node, scope, tuple(value for value in inputs if value is not None))


def _empty(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    return _made(node, scope, ())


def _position(value: Value | None, length: int, default: int) -> int | None:
    if value is None:
        return default
    if value.ints is None:
        return None
    index = value.ints[0]
    return index + length if index < 0 else index


def _insert(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    items, element = _items(inputs[0]), inputs[1]
    if items is None or element is None:
        return _made(node, scope, None)
    at = _position(inputs[2] if len(inputs) > 2 else None, len(items), len(items))
    return _made(node, scope, None if at is None else (*items[:at], element, *items[at:]))


def _erase(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    items = _items(inputs[0])
    if items is None:
        return _made(node, scope, None)
    at = _position(inputs[1] if len(inputs) > 1 else None, len(items), len(items) - 1)
    return _made(node, scope, None if at is None else (*items[:at], *items[at + 1 :]))


def _at(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    items = _items(inputs[0])
    at = _position(inputs[1], len(items or ()), 0)
    if items and at is not None and 0 <= at < len(items):
        return [items[at]]
    if items and all(item.spec == items[0].spec for item in items):  # whichever it is, it has this shape
        return [Value(scope.path + node.output[0], items[0].spec, items[0].dtype)]
    return [Value(scope.path + node.output[0])]


def _length(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    import numpy as np

    items = _items(inputs[0])
    data = None if items is None else np.array(len(items), np.int64)
    return [Value(scope.path + node.output[0], TensorSpec((), "int64"), "int64", data, constant=data is not None)]


def _split(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    attributes = {a.name: a.i for a in node.attribute}
    value, parts = inputs[0], inputs[1] if len(inputs) > 1 else None
    if value is None or value.spec is None:
        return _made(node, scope, None)
    shape = value.spec.shape
    axis = attributes.get("axis", 0) % max(len(shape), 1)
    size = shape[axis]
    if parts is None:
        sizes = (1,) * size
    elif parts.ints is None:
        return _made(node, scope, None)
    elif parts.spec is not None and parts.spec.shape == ():
        step = max(1, parts.ints[0])
        sizes = tuple(min(step, size - start) for start in range(0, size, step))
    else:
        sizes = parts.ints
    dropped = parts is None and attributes.get("keepdims", 1) == 0
    items = []
    for number, part in enumerate(sizes):
        rest = shape[:axis] + (() if dropped else (part,)) + shape[axis + 1 :]
        items.append(
            Value(f"{scope.path}{node.output[0]}.{number}", TensorSpec(rest, value.spec.dtype), value.spec.dtype)
        )
    return _made(node, scope, tuple(items))


def _concat(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """ConcatFromSequence: as a Concat of the elements, so that its traffic counts."""
    items = _items(inputs[0])
    attributes = {a.name: a.i for a in node.attribute}
    specs = [item.spec for item in items or () if item.spec is not None]
    if not items or len(specs) < len(items):
        return walk.operator(node, "", inputs, scope)
    axis = attributes.get("axis", 0)
    first = specs[0]
    if attributes.get("new_axis", 0):
        at = axis % (len(first.shape) + 1)
        shape = (*first.shape[:at], len(items), *first.shape[at:])
    else:
        at = axis % len(first.shape)
        shape = (*first.shape[:at], sum(spec.shape[at] for spec in specs), *first.shape[at + 1 :])
    result = Value(scope.path + node.output[0], TensorSpec(shape, first.dtype), first.dtype)
    walk.emit(NodeProto(op_type="Concat", name=node.name, output=node.output), list(items), [result], scope)
    return [result]


HANDLERS: Mapping[str, Handler] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SplitToSequence": _split,
    "ConcatFromSequence": _concat,
}
