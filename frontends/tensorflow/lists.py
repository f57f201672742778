"""TensorLists and TensorArrays: what loops read their steps from and write their results to.

Elements are handed over, not copied; putting them into one tensor is a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphcost.frontends.tensorflow.body import NodeDef
from graphcost.frontends.tensorflow.emit import Op
from graphcost.frontends.tensorflow.values import ListState, Value
from graphcost.frontends.tensorflow.walk import Scope, Walk, opens
from graphcost.ir import TensorSpec

_INT32, _FLOAT, _RESOURCE, _VARIANT = 3, 1, 20, 21


def _list(walk: Walk, name: str, element: TensorSpec | None, count: int | None) -> Value:
    return Value(name, _VARIANT, None, walk.scratch.placeholder(_VARIANT, ()), items=ListState(element, count))


def _count(value: Value) -> int | None:
    return value.ints[0] if value.ints else None


def _tail(value: Value) -> TensorSpec | None:
    """An element of a tensor that is cut along its first axis."""
    return TensorSpec(value.spec.shape[1:], value.spec.dtype) if value.spec and value.spec.shape else None


def _element(walk: Walk, node: NodeDef, items: ListState | None, shape: Value | None, name: str) -> Value:
    """One element, by what was put in or else by what the operator states."""
    dtype = node.attr["element_dtype"].type or node.attr["dtype"].type
    if items is not None and items.element is not None:
        return walk.fresh(name, dtype, items.element.shape)
    sizes = shape.ints if shape is not None and shape.spec is not None and shape.spec.shape else None
    partial = None if sizes is None else tuple(size if size >= 0 else None for size in sizes)
    if partial is not None and None in partial:
        return Value(name, dtype, None, walk.scratch.placeholder(dtype, partial))
    return walk.fresh(name, dtype, sizes)


def _joined(walk: Walk, node: NodeDef, source: Value, shape: tuple[int, ...] | None, scope: Scope) -> Value:
    """All elements in one tensor, copied there."""
    name = f"{scope.path}{node.name}:0"
    result = walk.fresh(name, node.attr["element_dtype"].type or node.attr["dtype"].type, shape)
    elements = Value(source.name, result.dtype, result.spec)
    Op(node, (elements,), (result,), scope.path, scope.repeat, walk.nodes).emit("Concat", [elements], axis=0)
    return result


@opens("TensorListReserve", "EmptyTensorList")
def reserve(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Element shape, number of elements (or the most there may be)."""
    count = 0 if node.op == "EmptyTensorList" else _count(inputs[1])
    return [_list(walk, f"{scope.path}{node.name}:0", None, count)]


@opens("TensorListFromTensor")
def from_tensor(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The tensor's slices along its first axis."""
    tensor = inputs[0]
    return [_list(walk, tensor.name, _tail(tensor), tensor.spec.shape[0] if _tail(tensor) and tensor.spec else None)]


@opens("TensorListSetItem")
def set_item(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, index, item."""
    items = inputs[0].items or ListState(None, None)
    count, index = items.count, _count(inputs[1])
    if count is not None and node.attr["resize_if_index_out_of_bounds"].b:
        if index is not None:
            count = max(count, index + 1)
        elif not count:  # assumed: a list that starts empty and is written at a moving index grows by one
            count = 1
    return [_list(walk, inputs[2].name, inputs[2].spec or items.element, count)]


@opens("TensorListPushBack")
def push_back(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, item."""
    items = inputs[0].items or ListState(None, None)
    count = None if items.count is None else items.count + 1
    return [_list(walk, inputs[1].name, inputs[1].spec or items.element, count)]


@opens("TensorListPopBack")
def pop_back(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, element shape; the list without its last item, and the item."""
    items = inputs[0].items or ListState(None, None)
    count = None if items.count is None else items.count - 1
    item = _element(walk, node, items, inputs[1], inputs[0].name)
    return [_list(walk, inputs[0].name, items.element, count), item]


@opens("TensorListGetItem")
def get_item(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, index, element shape."""
    return [_element(walk, node, inputs[0].items, inputs[2], inputs[0].name)]


@opens("TensorListResize")
def resize(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, number of elements."""
    items = inputs[0].items or ListState(None, None)
    return [_list(walk, inputs[0].name, items.element, _count(inputs[1]))]


@opens("TensorListLength")
def length(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """How many elements there are."""
    name, items = f"{scope.path}{node.name}:0", inputs[0].items
    if items is None or items.count is None:
        return [walk.fresh(name, _INT32, ())]
    return [walk.known(name, _INT32, np.asarray(items.count, np.int32))]


@opens("StackV2", "StackPushV2", "OptionalFromValue", "OptionalNone")
def kept_for_backward(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """What loops and branches keep for their gradients; pushing (stack, item) passes the item on."""
    return inputs[1:2] if node.op == "StackPushV2" else [_list(walk, f"{scope.path}{node.name}:0", None, None)]


@opens("TensorListStack")
def stack(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, element shape: ``[count, *element]``."""
    items = inputs[0].items or ListState(None, None)
    stated = int(node.attr["num_elements"].i) if "num_elements" in node.attr else -1
    count = items.count if items.count is not None else (stated if stated >= 0 else None)
    element = _element(walk, node, items, inputs[1], "").spec
    shape = None if count is None or element is None else (count, *element.shape)
    return [_joined(walk, node, inputs[0], shape, scope)]


@opens("TensorListGather")
def gather(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """List, indices, element shape."""
    element = _element(walk, node, inputs[0].items, inputs[2], "").spec
    known = element is not None and inputs[1].spec is not None
    shape = (*inputs[1].spec.shape, *element.shape) if known and inputs[1].spec and element else None
    return [_joined(walk, node, inputs[0], shape, scope)]


@opens("TensorListConcat", "TensorListConcatV2")
def concat(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Elements joined along their first axis; and how long each was."""
    items = inputs[0].items or ListState(None, None)
    shape, lengths = None, None
    if items.element is not None and items.count is not None and items.element.shape:
        shape = (items.count * items.element.shape[0], *items.element.shape[1:])
        lengths = (items.count,)
    return [_joined(walk, node, inputs[0], shape, scope), walk.fresh(f"{scope.path}{node.name}:1", 9, lengths)]


@opens("TensorArrayV3", "TensorArrayV2", "TensorArray")
def array(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """TF 1's list, changed in place: its handle and a flow that orders the accesses share one state."""
    state = ListState(None, _count(inputs[0]))
    handle = Value(f"{scope.path}{node.name}:0", _RESOURCE, items=state)
    flow = replace(walk.fresh(f"{scope.path}{node.name}:1", _FLOAT, ()), items=state)
    return [handle, flow]


def _flow(walk: Walk, name: str, state: ListState | None) -> Value:
    return replace(walk.fresh(name, _FLOAT, ()), items=state)


@opens("TensorArrayWriteV3", "TensorArrayWriteV2", "TensorArrayWrite")
def array_write(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Handle, index, value, flow."""
    state = inputs[0].items
    if state is not None:
        state.element = inputs[2].spec or state.element
    return [_flow(walk, inputs[2].name, state)]


@opens("TensorArrayScatterV3", "TensorArrayScatterV2", "TensorArrayUnpack")
def array_scatter(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Handle, indices, value, flow."""
    state, value = inputs[0].items, inputs[-2]
    if state is not None and value.spec is not None and value.spec.shape:
        state.element, state.count = _tail(value), value.spec.shape[0]
    return [_flow(walk, value.name, state)]


@opens("TensorArrayReadV3", "TensorArrayReadV2", "TensorArrayRead")
def array_read(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Handle, index, flow."""
    return [_element(walk, node, inputs[0].items, None, inputs[-1].name)]


@opens("TensorArrayGatherV3", "TensorArrayGatherV2", "TensorArrayPack")
def array_gather(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Handle, indices, flow."""
    state = inputs[0].items or ListState(None, None)
    indices = inputs[1].spec if node.op != "TensorArrayPack" else None
    count = state.count if indices is None else indices.numel
    shape = None if count is None or state.element is None else (count, *state.element.shape)
    return [_joined(walk, node, inputs[-1], shape, scope)]


@opens("TensorArraySizeV3", "TensorArraySizeV2", "TensorArraySize")
def array_size(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """How many elements there are."""
    return length(walk, node, inputs, scope)
