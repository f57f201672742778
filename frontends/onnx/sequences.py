"""Sequences of tensors, whose elements are followed one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto

from graphcost.errors import ModelFileError, ShapeError
from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec

if TYPE_CHECKING:
    from graphcost.frontends.onnx.interpreter import Interpreter
    from graphcost.frontends.onnx.scope import Scope

Handler = Callable[["Interpreter", NodeProto, list[Value | None], "Scope"], list[Value]]


MAX_ITEMS = 4096
"""Elements of a sequence that are followed one by one; a longer one is a sequence of unknown elements."""


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


def _axis(node: NodeProto, axis: int, rank: int) -> int:
    """``axis`` counted from the front; raises ``ShapeError`` where there is no such axis."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{node.name or node.output[0]} ({node.op_type}): axis {axis} of tensors with {rank} axes")
    return axis % rank


def _split(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    attributes = {a.name: a.i for a in node.attribute}
    value, parts = inputs[0], inputs[1] if len(inputs) > 1 else None
    if value is None or value.spec is None:
        return _made(node, scope, None)
    shape = value.spec.shape
    axis = _axis(node, attributes.get("axis", 0), len(shape))
    size = shape[axis]
    if parts is None:
        if size > MAX_ITEMS:
            return _made(node, scope, None)
        sizes = (1,) * size
    elif parts.ints is None:
        return _made(node, scope, None)
    elif parts.spec is not None and parts.spec.shape == ():
        step = max(1, parts.ints[0])
        if size > MAX_ITEMS * step:
            return _made(node, scope, None)
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
        at = _axis(node, axis, len(first.shape) + 1)
        shape = (*first.shape[:at], len(items), *first.shape[at:])
    else:
        at = _axis(node, axis, len(first.shape))
        shape = (*first.shape[:at], sum(spec.shape[at] for spec in specs), *first.shape[at + 1 :])
    result = Value(scope.path + node.output[0], TensorSpec(shape, first.dtype), first.dtype)
    walk.emit(NodeProto(op_type="Concat", name=node.name, output=node.output), list(items), [result], scope)
    return [result]


def _map(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """SequenceMap: its body once for each element; tensors among the inputs go to every call."""
    items = _items(inputs[0])
    bodies: list[GraphProto] = [a.g for a in node.attribute if a.name == "body" and a.HasField("g")]
    if items is None or not bodies:
        return walk.operator(node, "", inputs, scope)
    columns = [(items if value is None or value.items is None else value.items, value) for value in inputs]
    if any(len(column) != len(items) for column, _ in columns):
        raise ModelFileError(f"{node.name or node.op_type} (SequenceMap): its sequences differ in length")
    calls: list[list[Value]] = []
    for number in range(len(items)):
        formals = [
            column[number] if value is not None and value.items is not None else value for column, value in columns
        ]
        present = [value for value in formals if value is not None]
        calls.append(walk.subgraph(bodies[0], present, scope, node, f"body.{number}"))
    results = []
    for at, name in enumerate(node.output):
        results.append(Value(scope.path + name if name else "", items=tuple(call[at] for call in calls)))
    return results


def _passed(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """Identity, Optional and OptionalGetElement of a sequence: the same sequence."""
    value = inputs[0] if inputs else None
    if value is None or value.items is None:
        return walk.operator(node, "", inputs, scope)
    return [value]


HANDLERS: Mapping[str, Handler] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "Identity": _passed,
    "Optional": _passed,
    "OptionalGetElement": _passed,
    "SplitToSequence": _split,
    "ConcatFromSequence": _concat,
}
