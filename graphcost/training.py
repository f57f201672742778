"""From an op graph to one training step: what runs, what is sent, what is kept.

Backward follows forward in reverse: an operator has a backward pass where a trainable
parameter lies at or before it; graph inputs get no gradient, frozen weights none. A
parameter's gradient is ready when the backward pass has left its first user.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from graphcost.graph import cost_key, operators, parameters
from graphcost.ir import OpCost, OpNode, Param, ParamKind, Phase
from graphcost.memory import Memory, memory_of
from graphcost.ops import OpClass, backward_cost, find_rule, op_class_of
from graphcost.recipe import OPTIMIZERS, Optimizer, Precision

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


@dataclass(frozen=True, slots=True)
class PlannedOp:
    """One operator in one phase. ``cost`` covers all its trips; None: no rule."""

    id: str
    name: str
    op_type: str
    op_class: OpClass | None
    phase: Phase
    cost: OpCost | None
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Gradient:
    """A parameter's gradient. ``ready_index``: position in the backward list after which it is whole.

    ``rows_bytes`` are the touched rows (values and indices) where the parameter is a table
    that is only looked up; None where the gradient is dense in any case.
    """

    param: str
    bytes: int
    ready_index: int
    rows_bytes: int | None = None
    sparse: bool = False

    @property
    def sent_bytes(self) -> int:
        """Bytes where a table marked sparse travels, and is kept, as its touched rows."""
        return self.rows_bytes if self.sparse and self.rows_bytes is not None else self.bytes


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One training step on one replica, before any hardware; holds no graph."""

    forward: tuple[PlannedOp, ...]
    backward: tuple[PlannedOp, ...]
    update: OpCost
    gradients: tuple[Gradient, ...]
    input_bytes: int
    batch: int | None
    precision: Precision
    optimizer: Optimizer
    memory: Memory
    param_tensors: int

    @property
    def gradient_bytes(self) -> int:
        """All gradients, tables dense."""
        return sum(gradient.bytes for gradient in self.gradients)

    @property
    def dense_gradients(self) -> tuple[Gradient, ...]:
        """Gradients that an exchange by rows leaves dense."""
        return tuple(g for g in self.gradients if g.rows_bytes is None)

    @property
    def rows_bytes(self) -> int:
        """Touched rows of all lookup tables."""
        return sum(g.rows_bytes for g in self.gradients if g.rows_bytes is not None)

    def total(self, phase: Phase) -> OpCost:
        """Summed cost of a phase; operators without a rule are not in it."""
        if phase is Phase.UPDATE:
            return self.update
        return total_cost(self.forward if phase is Phase.FORWARD else self.backward)


def total_cost(ops: tuple[PlannedOp, ...]) -> OpCost:
    """Sum over operators that have a cost."""
    matmul = elementwise = read = write = 0
    for op in ops:
        if op.cost is not None:
            matmul += op.cost.matmul_flops
            elementwise += op.cost.elementwise_flops
            read += op.cost.read_bytes
            write += op.cost.write_bytes
    return OpCost(matmul, elementwise, read, write)


def plan_step(
    graph: OpGraph,
    *,
    optimizer: Optimizer = OPTIMIZERS["adam"],
    precision: Precision = Precision.FP32,
    freeze: tuple[str, ...] = (),
    recompute: bool = False,
) -> StepPlan:
    """The step of ``graph``; ``optimizer`` "none" is inference: forward only.

    ``freeze`` are shell patterns of parameter names that are not trained. ``recompute``
    runs the forward pass again before the backward one and keeps no activations but the
    inputs (assumed: the whole model is one checkpoint per operator's output).
    """
    trains = optimizer.name != "none"
    params = parameters(graph)
    frozen = {name for name in params if any(fnmatchcase(name, pattern) for pattern in freeze)}
    model = graph.graph["model"]
    forward: list[PlannedOp] = []
    tape: list[tuple[str, OpNode, frozenset[int]]] = []
    with_gradient: set[str] = set()
    for node_id, node, cost in operators(graph):
        forward.append(PlannedOp(node_id, node.name, node.op_type, _class_of(node), Phase.FORWARD, cost, node.repeat))
        if not trains:
            continue
        wrt = _needs_gradient(node, with_gradient, frozen)
        if wrt:
            tape.append((node_id, node, wrt))
            with_gradient.update(
                name
                for name, spec in zip(node.output_names, node.outputs, strict=False)
                if spec is None or spec.is_float
            )
    backward: list[PlannedOp] = []
    ready: dict[str, int] = {}
    known: dict[Hashable, OpCost | None] = {}
    for node_id, node, wrt in reversed(tape):
        cost = _known_backward(node, wrt, known)
        for index, param in node.params:
            if index in wrt and _trains(param, frozen):
                ready[param.name] = len(backward)
        backward.append(
            PlannedOp(node_id, node.name, node.op_type, _class_of(node), Phase.BACKWARD, cost, node.repeat)
        )
    if recompute:
        shift = len(forward)
        backward = [_again(op) for op in forward] + backward
        ready = {name: index + shift for name, index in ready.items()}
    gradients = _gradients(graph, params, ready, precision)
    trained = sum(params[g.param].numel for g in gradients)
    width = precision.weight_bytes
    return StepPlan(
        forward=tuple(forward),
        backward=tuple(backward),
        update=OpCost(
            elementwise_flops=optimizer.flops * trained,
            read_bytes=width * (optimizer.moved_values - optimizer.state_values - 1) * trained if trains else 0,
            write_bytes=width * (optimizer.state_values + 1) * trained if trains else 0,
        ),
        gradients=gradients,
        input_bytes=sum(spec.size_bytes for spec in model.inputs.values()),
        batch=model.batch,
        precision=precision,
        optimizer=optimizer,
        memory=memory_of(
            params,
            {gradient.param: gradient.sent_bytes for gradient in gradients},
            [] if recompute else [node for _, node, _ in tape],
            precision,
            optimizer,
        ),
        param_tensors=len(gradients),
    )


def _class_of(node: OpNode) -> OpClass | None:
    return op_class_of(node) if find_rule(node) is not None else None


def _known_backward(node: OpNode, wrt: frozenset[int], known: dict[Hashable, OpCost | None]) -> OpCost | None:
    """Backward cost over all trips, asked once for operators that look the same to a rule."""
    seen = cost_key(node)
    key = (seen, wrt)
    if seen is not None and key in known:
        return known[key]
    cost = backward_cost(node, wrt)
    if cost is not None and node.repeat != 1:
        cost = cost * node.repeat
    if seen is not None:
        known[key] = cost
    return cost


def _again(op: PlannedOp) -> PlannedOp:
    return PlannedOp(op.id, op.name, op.op_type, op.op_class, Phase.BACKWARD, op.cost, op.repeat)


def _trains(param: Param, frozen: set[str]) -> bool:
    return param.trainable and param.kind is ParamKind.WEIGHT and param.name not in frozen


def _needs_gradient(node: OpNode, with_gradient: set[str], frozen: set[str]) -> frozenset[int]:
    """Inputs of ``node`` whose gradient somebody needs."""
    wrt = {index for index, name in enumerate(node.input_names) if name in with_gradient}
    wrt |= {index for index, param in node.params if _trains(param, frozen)}
    if not wrt or not any(spec is None or spec.is_float for spec in node.outputs):
        return frozenset()
    return frozenset(wrt)


def _gradients(
    graph: OpGraph, params: Mapping[str, Param], ready: Mapping[str, int], precision: Precision
) -> tuple[Gradient, ...]:
    """Gradients in order of readiness. A table that anything but a lookup uses is dense."""
    width = precision.weight_bytes
    rows: dict[str, int] = {}
    dense: set[str] = set()
    for _, node, _ in operators(graph):
        for index, param in node.params:
            if param.name not in ready:
                continue
            indices = node.spec(1)
            if node.op_type == "Gather" and index == 0 and node.attrs.get("axis", 0) == 0 and indices is not None:
                row = param.numel // max(1, param.spec.shape[0])
                touched = min(indices.numel * node.repeat, param.spec.shape[0])
                rows[param.name] = rows.get(param.name, 0) + touched * (
                    row * width + indices.size_bytes // max(1, indices.numel)
                )
            else:
                dense.add(param.name)
    return tuple(
        Gradient(
            param=name,
            bytes=params[name].numel * width,
            ready_index=index,
            rows_bytes=None if name in dense or name not in rows else min(rows[name], params[name].numel * width),
            sparse=params[name].sparse,
        )
        for name, index in sorted(ready.items(), key=lambda item: item[1])
    )
