"""Control flow: If, Loop and Scan become the operators that one step runs.

If: the branch its condition selects where that is known, else the dearer one. Loop and
Scan: the body once, repeated trip-count times; where shapes change from trip to trip,
trip by trip. (COST_MODEL, Definitions.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto

from graphcost.errors import GraphcostError, MissingSizeError, ModelFileError, UsageError
from graphcost.frontends.onnx.scope import definition
from graphcost.frontends.onnx.values import Value
from graphcost.ir import OpNode, TensorSpec

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
        walk.keep_params_of(other, scope, f"{scope.owner}/{definition(node)}.{label}")
        return walk.subgraph(branches[taken], [], scope, node, taken.removesuffix("_branch"))
    tried: dict[str, list[Value]] = {}
    collected: dict[str, list[OpNode]] = {}
    failures: list[GraphcostError] = []
    for name, graph in branches.items():
        with walk.collecting() as nodes:
            try:
                outputs = walk.subgraph(graph, [], scope, node, name.removesuffix("_branch"))
            except GraphcostError as error:  # a branch that cannot run for these sizes is not the one taken
                failures.append(error)
                continue
            tried[name] = outputs
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
    return tried[dearer]


def run_loop(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """Outputs of a Loop: carried values, then scan outputs with a leading trip axis."""
    body = _body(node)
    trips, exact = _trip_count(walk, node, inputs)
    condition = inputs[1] if len(inputs) > 1 else None
    carried = [value for value in inputs[2:] if value is not None]
    if condition is not None and condition.data is not None and not bool(condition.data.reshape(-1)[0]):
        trips = 0
    if trips is None:
        return _unrolled(walk, node, body, carried, scope, trips)
    outputs: list[Value] | None = None
    obstacle: MissingSizeError | None = None
    with walk.collecting() as nodes:
        try:
            outputs = _one_pass(walk, node, body, carried, scope, trips)
        except MissingSizeError as error:  # a size inside depends on the trip
            obstacle = error
    if trips and (outputs is None or (_open_shapes(nodes) and trips <= UNROLL_TRIPS)):
        if obstacle is not None and trips > UNROLL_TRIPS:
            raise obstacle
        with walk.collecting() as unrolled:
            results = _unrolled(walk, node, body, carried, scope, trips)
        if outputs is None or _open_shapes(unrolled) < trips * _open_shapes(nodes):
            walk.emit_all(unrolled)
            return results
    if outputs is None:
        raise obstacle or _changing(node, trips)
    walk.emit_all(nodes)
    if not exact and not _always(outputs[0]):
        walk.note(f"Loop {_name(node)!r}: counted for all {trips} trips; its condition may end it earlier")
    return _loop_results(outputs[1:], len(carried), trips, inputs[2:])


def _open_shapes(nodes: list[OpNode]) -> int:
    """How many results in ``nodes`` have no shape."""
    return sum(
        spec is None and bool(name)
        for node in nodes
        for name, spec in zip(node.output_names, node.outputs, strict=True)
    )


def _trip_count(walk: Interpreter, node: NodeProto, inputs: list[Value | None]) -> tuple[int | None, bool]:
    """(trips, whether the user gave them); None for a loop that only its condition ends."""
    given = walk.value_option(_name(node))
    if given is not None:
        if not 0 <= given[0] < _ENDLESS:
            raise UsageError(f"--input-value {_name(node)}: a Loop cannot take {given[0]} trips")
        return int(given[0]), True
    limit = inputs[0] if inputs else None
    if limit is None:
        return None, False
    if limit.data is None:
        source = walk.input_behind(limit)
        raise MissingSizeError(
            f"Loop {_name(node)!r}: its trip count is not known; give --input-value {source or _name(node)}=N"
        )
    count = max(0, int(limit.data.reshape(-1)[0]))
    return (None, False) if count >= _ENDLESS else (count, False)


def _one_pass(
    walk: Interpreter, node: NodeProto, body: GraphProto, carried: list[Value], scope: Scope, trips: int
) -> list[Value] | None:
    """The body once for all trips, or None where a carried shape changes."""
    formals = [_iteration(None), _unknown_condition(), *(_forget(value) for value in carried)]
    inner_repeat = max(trips, 1) if trips else 0
    outputs = walk.subgraph(body, formals, scope, node, "body", repeat=inner_repeat)
    _check_results(node, outputs, 1 + len(carried))
    for before, after in zip(carried, outputs[1:], strict=False):
        if before.spec != after.spec or len(before.items or ()) != len(after.items or ()):
            return None
    return outputs


def _unrolled(
    walk: Interpreter, node: NodeProto, body: GraphProto, carried: list[Value], scope: Scope, trips: int | None
) -> list[Value]:
    scans: list[list[Value]] = []
    count = 0
    limit = UNROLL_TRIPS if trips is None else trips
    if limit > UNROLL_TRIPS:
        raise _changing(node, limit)
    while count < limit:
        formals = [_iteration(count), _true(), *carried]
        outputs = walk.subgraph(body, formals, scope, node, f"body.{count}")
        _check_results(node, outputs, 1 + len(carried))
        count += 1
        carried = outputs[1 : 1 + len(carried)]
        scans.append(outputs[1 + len(carried) :])
        keep_on = outputs[0].data
        if keep_on is None and trips is None:
            raise MissingSizeError(
                f"Loop {_name(node)!r}: it ends by a condition on computed data, so its trip count is not known; "
                f"give --input-value {_name(node)}=N"
            )
        if keep_on is not None and not bool(keep_on.reshape(-1)[0]):
            break
    else:
        if trips is None:
            raise MissingSizeError(
                f"Loop {_name(node)!r}: more than {UNROLL_TRIPS} trips; give --input-value {_name(node)}=N"
            )
    stacked = [_stack_all(column) for column in zip(*scans, strict=True)] if scans else []
    return [*carried, *stacked]


def _changing(node: NodeProto, trips: int) -> MissingSizeError:
    return MissingSizeError(
        f"Loop {_name(node)!r}: shapes change over {trips} trips, more than the {UNROLL_TRIPS} walked one by one; "
        f"give fewer with --input-value {_name(node)}=N"
    )


def _ints(node: NodeProto, name: str) -> tuple[int, ...]:
    """An integer attribute or a list of them, () where it is absent; another type is refused."""
    for attribute in node.attribute:
        if attribute.name == name:
            if attribute.type == AttributeProto.INT:
                return (attribute.i,)
            if attribute.type == AttributeProto.INTS:
                return tuple(attribute.ints)
            raise ModelFileError(f"{_name(node)} ({node.op_type}): attribute {name!r} must hold integers")
    return ()


def run_scan(walk: Interpreter, node: NodeProto, inputs: list[Value | None], scope: Scope) -> list[Value]:
    """Outputs of a Scan: final states, then stacked slices.

    Source: ONNX Scan-9 and newer; Scan-8 has a batch axis in front of everything, and
    sequence lengths at input 0.
    """
    body = _body(node)
    if scope.opsets.get("", 1) < 9:
        return _scan_8(walk, node, inputs, body, scope)
    scanned = (_ints(node, "num_scan_inputs") or (0,))[0]
    present = [value for value in inputs if value is not None]
    if not 1 <= scanned <= len(present):
        raise ModelFileError(
            f"{_name(node)} (Scan): num_scan_inputs is {scanned}; it must lie between 1 and the {len(present)} inputs"
        )
    states, sequences = present[: len(present) - scanned], present[len(present) - scanned :]
    axes = _ints(node, "scan_input_axes") or (0,) * scanned
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
        raise ModelFileError(f"{_name(node)} (Scan): scan_input_axes names no axis of the scanned inputs")
    formals = [*(_forget(value) for value in states), *slices]
    outputs = walk.subgraph(body, formals, scope, node, "body", repeat=trips)
    _check_results(node, outputs, len(states))
    out_axes = _ints(node, "scan_output_axes") or (0,) * (len(outputs) - len(states))
    stacked = [_stack(value, trips, axis) for value, axis in zip(outputs[len(states) :], out_axes, strict=False)]
    return [*(_forget(value) for value in outputs[: len(states)]), *stacked]


def _scan_8(
    walk: Interpreter, node: NodeProto, inputs: list[Value | None], body: GraphProto, scope: Scope
) -> list[Value]:
    scanned = (_ints(node, "num_scan_inputs") or (0,))[0]
    values = [value for value in inputs[1:] if value is not None]
    specs = [value.spec for value in values if value.spec is not None and value.spec.shape]
    if not 0 < scanned <= len(values) or len(specs) < len(values) or len(specs[-1].shape) < 2:
        raise ModelFileError(f"{_name(node)} (Scan): needs states [batch, ...] and scanned inputs [batch, T, ...]")
    batch, trips = specs[-1].shape[:2]
    states = len(values) - scanned
    formals = [
        Value(value.name, TensorSpec(spec.shape[1 if at < states else 2 :], spec.dtype), spec.dtype)
        for at, (value, spec) in enumerate(zip(values, specs, strict=True))
    ]
    outputs = walk.subgraph(body, formals, scope, node, "body", repeat=batch * trips)
    _check_results(node, outputs, states)
    finals = [_stack(_forget(value), batch) for value in outputs[:states]]
    return [*finals, *(_stack(_stack(value, trips), batch) for value in outputs[states:])]


def _loop_results(outputs: list[Value], carried: int, trips: int, initial: list[Value | None]) -> list[Value]:
    if trips == 0:
        finals = [value for value in initial if value is not None]
    else:
        finals = [_forget(value) for value in outputs[:carried]]
    return [*finals, *(_stack(value, trips) for value in outputs[carried:])]


def _stack_all(column: tuple[Value, ...]) -> Value:
    """Slices of all trips on a new leading axis; they must have one shape."""
    first = column[0]
    if any(value.spec != first.spec for value in column):
        return Value(first.name, None, first.dtype)
    return _stack(first, len(column))


def _stack(first: Value, trips: int, axis: int = 0) -> Value:
    """``trips`` slices shaped like ``first`` on a new ``axis``."""
    if first.spec is None:
        return Value(first.name, None, first.dtype)
    rank = len(first.spec.shape) + 1
    at = axis % rank
    shape = (*first.spec.shape[:at], trips, *first.spec.shape[at:])
    return Value(first.name, TensorSpec(shape, first.spec.dtype), first.spec.dtype)


def _forget(value: Value) -> Value:
    """``value`` with its shape but not its content: it changes from trip to trip."""
    items = None if value.items is None else tuple(_forget(item) for item in value.items)
    return replace(value, data=None, constant=False, stored=False, leaves=(), items=items)


def _iteration(count: int | None) -> Value:
    data = None if count is None else np.array(count, np.int64)
    return Value("", TensorSpec((), "int64"), "int64", data, constant=count is not None)


def _true() -> Value:
    return Value("", TensorSpec((), "bool"), "bool", np.array(True), constant=True)


def _unknown_condition() -> Value:
    return Value("", TensorSpec((), "bool"), "bool", np.array(True))


def _always(condition: Value) -> bool:
    return condition.data is not None and bool(condition.data.reshape(-1)[0])


def _check_results(node: NodeProto, outputs: list[Value], needed: int) -> None:
    if len(outputs) < needed:
        raise ModelFileError(f"{_name(node)} ({node.op_type}): its body gives {len(outputs)} results, not {needed}")


def _body(node: NodeProto) -> GraphProto:
    for attribute in node.attribute:
        if attribute.name == "body" and attribute.HasField("g"):
            graph: GraphProto = attribute.g
            return graph
    raise ModelFileError(f"{_name(node)} ({node.op_type}): has no body")


def _name(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), node.op_type)
