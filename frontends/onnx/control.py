"""Control flow: If, Loop and Scan become the operators that one step runs.

If: the branch its condition selects where that is known, else the dearer one. Loop and
Scan: the body once, repeated trip-count times; where shapes change from trip to trip,
trip by trip. (COST_MODEL, Definitions.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from onnx import GraphProto, NodeProto, helper

from graphcost.errors import GraphcostError, MissingSizeError, ModelFileError
from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec

if TYPE_CHECKING:
    from graphcost.frontends.onnx.interpreter import Interpreter
    from graphcost.frontends.onnx.scope import Scope

UNROLL_TRIPS = 512
"""Trips walked one by one where the body's shapes or condition change; assumed: enough for exported loops."""

_ENDLESS = 2**62  # exporters write INT64_MAX for `while`


def run_if(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """Outputs of an If; its operators are emitted."""
    branches = {a.name: a.g for a in node.attribute if a.name in ("then_branch", "else_branch")}
    if len(branches) != 2:
        raise ModelFileError(f"{_name(node)} (If): needs then_branch and else_branch")
    condition = inputs[0]
    if condition is not None and condition.data is not None and condition.data.size == 1:
        taken = "then_branch" if bool(condition.data.reshape(-1)[0]) else "else_branch"
        other = branches["else_branch" if taken == "then_branch" else "then_branch"]
        label = "else" if taken == "then_branch" else "then"
        walk.keep_params_of(other, scope, f"{scope.owner}/{_name(node)}.{label}")
        return walk.subgraph(branches[taken], [], scope, node, taken.removesuffix("_branch"))
    tried: dict[str, tuple[list[Value], int]] = {}
    collected = {}
    failures: list[GraphcostError] = []
    for name, graph in branches.items():
        with walk.collecting() as nodes:
            try:
                outputs = walk.subgraph(graph, [], scope, node, name.removesuffix("_branch"))
            except GraphcostError as error:  # a branch that cannot run for these sizes is not the one taken
                failures.append(error)
                continue
            tried[name] = (outputs, 0)
            collected[name] = nodes
    if not tried:
        raise failures[0]
    weights = {name: walk.cost_of(nodes) for name, nodes in collected.items()}
    dearer = max(tried, key=lambda name: weights[name])
    for name, nodes in collected.items():
        if name == dearer:
            walk.emit_all(nodes)
        else:
            walk.keep_params(nodes)
    label = dearer.removesuffix("_branch")
    walk.note(f"If {_name(node)!r}: its condition is not known; the dearer branch ({label}) is counted")
    return tried[dearer][0]


def run_loop(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """Outputs of a Loop: carried values, then scan outputs with a leading trip axis."""
    body = _body(node)
    trips, exact = _trip_count(walk, node, inputs)
    condition = inputs[1] if len(inputs) > 1 else None
    carried = [value for value in inputs[2:] if value is not None]
    if condition is not None and condition.data is not None and not bool(condition.data.reshape(-1)[0]):
        trips = 0
    if trips is not None:
        with walk.collecting() as nodes:
            outputs = _one_pass(walk, node, body, carried, scope, trips)
        if outputs is not None:
            walk.emit_all(nodes)
            if not exact or not _always(outputs[0]):
                walk.note(f"Loop {_name(node)!r}: counted for all {trips} trips; its condition may end it earlier")
            return _loop_results(outputs[1:], len(carried), trips, inputs[2:])
    return _unrolled(walk, node, body, carried, scope, trips)


def _trip_count(walk: Interpreter, node: NodeProto, inputs: list[Value | None]) -> tuple[int | None, bool]:
    """(trips, whether given exactly); None for a loop that only its condition ends."""
    given = walk.value_option(node.name)
    if given is not None:
        return int(given[0]), True
    limit = inputs[0] if inputs else None
    if limit is None:
        return None, True
    if limit.data is None:
        source = walk.input_behind(limit)
        raise MissingSizeError(
            f"Loop {_name(node)!r}: its trip count is not known; give --input-value "
            f"{source or node.name or limit.name}=N"
        )
    count = max(0, int(limit.data.reshape(-1)[0]))
    return (None, True) if count >= _ENDLESS else (count, True)


def _one_pass(
    walk: Interpreter, node: NodeProto, body: GraphProto, carried: list[Value], scope: Scope, trips: int
) -> list[Value] | None:
    """The body once for all trips, or None where a carried shape changes."""
    formals = [_iteration(None), _unknown_condition(), *(_forget(value) for value in carried)]
    inner_repeat = max(trips, 1) if trips else 0
    outputs = walk.subgraph(body, formals, scope, node, "body", repeat=inner_repeat)
    for before, after in zip(carried, outputs[1:], strict=False):
        if before.spec != after.spec:
            return None
    return outputs


def _unrolled(
    walk: Interpreter, node: NodeProto, body: GraphProto, carried: list[Value], scope: Scope, trips: int | None
) -> list[Value]:
    scans: list[list[Value]] = []
    count = 0
    limit = UNROLL_TRIPS if trips is None else trips
    if limit > UNROLL_TRIPS:
        raise MissingSizeError(
            f"Loop {_name(node)!r}: shapes change over {limit} trips, more than the {UNROLL_TRIPS} "
            "walked one by one; "
            f"give fewer with --input-value {node.name or 'NODE'}=N"
        )
    while count < limit:
        formals = [_iteration(count), _true(), *carried]
        outputs = walk.subgraph(body, formals, scope, node, f"body.{count}")
        count += 1
        carried = outputs[1 : 1 + len(carried)]
        scans.append(outputs[1 + len(carried) :])
        keep_on = outputs[0].data
        if keep_on is None and trips is None:
            raise MissingSizeError(
                f"Loop {_name(node)!r}: it ends by a condition on computed data, so its trip count is not known; "
                f"give --input-value {node.name or 'NODE'}=N"
            )
        if keep_on is not None and not bool(keep_on.reshape(-1)[0]):
            break
    else:
        if trips is None:
            raise MissingSizeError(
                f"Loop {_name(node)!r}: more than {UNROLL_TRIPS} trips; give --input-value {node.name or 'NODE'}=N"
            )
    stacked = [_stack(column, count) for column in zip(*scans, strict=True)] if scans else []
    return [*carried, *stacked]


def run_scan(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """Outputs of a Scan (opset 9 and newer): final states, then stacked slices."""
    body = _body(node)
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name != "body"}
    scanned = int(attributes.get("num_scan_inputs", 0))
    present = [value for value in inputs if value is not None]
    states, sequences = present[: len(present) - scanned], present[len(present) - scanned :]
    axes = attributes.get("scan_input_axes") or [0] * scanned
    trips: int | None = None
    slices: list[Value] = []
    for value, axis in zip(sequences, axes, strict=False):
        if value.spec is None or not value.spec.shape:
            raise ModelFileError(f"{_name(node)} (Scan): the shape of scanned input {value.name!r} is not known")
        axis %= len(value.spec.shape)
        trips = value.spec.shape[axis]
        shape = value.spec.shape[:axis] + value.spec.shape[axis + 1 :]
        slices.append(Value(value.name, TensorSpec(shape, value.spec.dtype), value.spec.dtype))
    if trips is None:
        raise ModelFileError(f"{_name(node)} (Scan): num_scan_inputs is {scanned}; at least one is needed")
    formals = [*(_forget(value) for value in states), *slices]
    outputs = walk.subgraph(body, formals, scope, node, "body", repeat=trips)
    out_axes = attributes.get("scan_output_axes") or [0] * (len(outputs) - len(states))
    stacked = [
        _stack([value] * trips, trips, axis) for value, axis in zip(outputs[len(states) :], out_axes, strict=False)
    ]
    return [*(_forget(value) for value in outputs[: len(states)]), *stacked]


def _loop_results(outputs: list[Value], carried: int, trips: int, initial: list[Value | None]) -> list[Value]:
    if trips == 0:
        finals = [value for value in initial if value is not None]
    else:
        finals = [_forget(value) for value in outputs[:carried]]
    return [*finals, *(_stack([value] * max(trips, 1), trips) for value in outputs[carried:])]


def _stack(column: list[Value] | tuple[Value, ...], trips: int, axis: int = 0) -> Value:
    first = column[0]
    if first.spec is None or any(value.spec != first.spec for value in column):
        return Value(first.name, None, first.dtype)
    rank = len(first.spec.shape) + 1
    at = axis % rank
    shape = (*first.spec.shape[:at], trips, *first.spec.shape[at:])
    return Value(first.name, TensorSpec(shape, first.spec.dtype), first.spec.dtype)


def _forget(value: Value) -> Value:
    """``value`` with its shape but not its content: it changes from trip to trip."""
    return replace(value, data=None, constant=False, stored=False, leaves=())


def _iteration(count: int | None) -> Value:
    data = None if count is None else np.array(count, np.int64)
    return Value("", TensorSpec((), "int64"), "int64", data, constant=count is not None)


def _true() -> Value:
    return Value("", TensorSpec((), "bool"), "bool", np.array(True), constant=True)


def _unknown_condition() -> Value:
    return Value("", TensorSpec((), "bool"), "bool", np.array(True))


def _always(condition: Value) -> bool:
    return condition.data is not None and bool(condition.data.reshape(-1)[0])


def _body(node: NodeProto) -> GraphProto:
    for attribute in node.attribute:
        if attribute.name == "body" and attribute.HasField("g"):
            graph: GraphProto = attribute.g
            return graph
    raise ModelFileError(f"{_name(node)} ({node.op_type}): has no body")


def _name(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), node.op_type)
