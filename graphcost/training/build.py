"""From an op graph to one training step: what runs, what is sent, what is kept.

Backward follows forward in reverse: an operator has a backward pass where a trainable
parameter lies at or before it; graph inputs get no gradient, frozen weights none. A
value that several operators read gets a sum for every further part of its gradient. A
parameter's gradient is ready when the backward pass has left its first user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.graph import operators, parameters
from graphcost.ir import Model, OpNode, Param, ParamKind, Phase
from graphcost.recipe import Execution, Layout, Recipe
from graphcost.registry import did_you_mean
from graphcost.training.attention_parts import taken_apart
from graphcost.training.autocast import under
from graphcost.training.by_hand import fp32_softmaxes
from graphcost.training.fusion import Fusion, fusion_of
from graphcost.training.gradients import by_rows, gradients_of, values_read
from graphcost.training.kernels import Kernels
from graphcost.training.memory import Memory, Step, memory_of
from graphcost.training.moments import Moment, moments_of
from graphcost.training.plan import PlannedOp, StepBytes, StepPlan, total_cost
from graphcost.training.saved import TapeOp, kept_results
from graphcost.training.update import updates_of
from graphcost.training.views import Laid, lay_out

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


def plan_step(graph: OpGraph, recipe: Recipe | None = None) -> StepPlan:
    """The step of ``graph`` under ``recipe`` (default: Adam in fp32, eager)."""
    recipe = recipe or Recipe()
    model, params = graph.graph["model"], parameters(graph)
    ids, laid, outputs = _laid_out(graph, recipe)
    trained = _trained(params, recipe.freeze)
    tape = _tape(laid, trained, recipe)
    fusion = fusion_of(laid, outputs, recipe.execution)
    forward = _forward(laid, ids, fusion, recipe)
    eager, fused = (
        forward if recipe.execution is one else _forward(laid, ids, fusion_of(laid, outputs, one), recipe)
        for one in (Execution.EAGER, Execution.COMPILED)
    )
    backward, ready = _backward(Kernels(laid, ids, fusion, recipe), laid, tape, trained)
    if recipe.recompute and tape:
        kept = kept_results(laid) if recipe.selective else frozenset()
        again = [replace(op, phase=Phase.BACKWARD) for op in _forward(laid, ids, fusion, recipe, without=kept)]
        backward, ready = again + backward, {name: index + len(again) for name, index in ready.items()}
    gradients = gradients_of((op.node for op in laid), params, ready, recipe)
    step = Step(laid, tape, fusion, _input_bytes(model), outputs)
    return StepPlan(
        forward=tuple(forward),
        backward=tuple(backward),
        updates=updates_of(gradients, params, recipe),
        gradients=gradients,
        input_bytes=sum(spec.size_bytes for spec in model.inputs.values()),
        batch=model.batch,
        recipe=recipe,
        memory=memory_of(step, params, {g.param: g.sent_bytes for g in gradients}, recipe),
        bytes=StepBytes(
            total_cost(eager).bytes,
            total_cost(fused).bytes,
            values_read(op.node for op in laid) * recipe.weight_bytes,
        ),
    )


def step_memory(graph: OpGraph, recipe: Recipe) -> Memory:
    """Memory of the step that ``plan_step`` would plan, without what it runs."""
    params = parameters(graph)
    _, laid, outputs = _laid_out(graph, recipe)
    tape = _tape(laid, _trained(params, recipe.freeze), recipe)
    fusion = fusion_of(laid, outputs, recipe.execution)
    stored = (param.name for one in tape for slot in one.wrt for param in laid[one.position].node.params_at(slot))
    trained = _trained(params, recipe.freeze)
    ready = {name: 0 for name in stored if name in trained}
    gradients = gradients_of((op.node for op in laid), params, ready, recipe)
    step = Step(laid, tape, fusion, _input_bytes(graph.graph["model"]), outputs)
    return memory_of(step, params, {g.param: g.sent_bytes for g in gradients}, recipe)


def memory_moments(graph: OpGraph, plan: StepPlan) -> tuple[Moment, ...]:
    """Memory over the step that ``plan`` was made of: what it holds after every allocation, in order."""
    recipe, params = plan.recipe, parameters(graph)
    ids, laid, outputs = _laid_out(graph, recipe)
    tape = _tape(laid, _trained(params, recipe.freeze), recipe)
    fusion = fusion_of(laid, outputs, recipe.execution)
    step = Step(laid, tape, fusion, _input_bytes(graph.graph["model"]), outputs)
    return moments_of(step, ids, params, {g.param: g.sent_bytes for g in plan.gradients}, recipe)


def _laid_out(graph: OpGraph, recipe: Recipe) -> tuple[list[str], list[Laid], frozenset[str]]:
    """What runs, in order: whose each part is, the parts with their storages, and the storages of the ends."""
    model = graph.graph["model"]
    nodes = ((node_id, node) for node_id, node, _ in operators(graph))
    parts = list(nodes if recipe.fused_attention else taken_apart(nodes))
    by_hand = recipe.execution is Execution.FUSED
    full = fp32_softmaxes(node for _, node in parts) if by_hand else frozenset()
    how: dict[str, Any] = {"half_ops": recipe.half_ops, "half_weights": recipe.master_weights, "full": full}
    typed = list(under(parts, recipe.precision, **how))
    last = recipe.layout is Layout.CHANNELS_LAST
    images = model.inputs if last else {}
    laid = list(lay_out((op.node for op in typed), trains=recipe.trains, channels_last=last, images=images))
    root = {name: storage for op in laid for name, storage in zip(op.node.output_names, op.writes, strict=False)}
    return [op.owner for op in typed], laid, frozenset(root.get(name, name) for name in model.outputs)


def _input_bytes(model: Model) -> dict[str, int]:
    return {name: spec.size_bytes for name, spec in model.inputs.items()}


def _forward(
    laid: Sequence[Laid], ids: Sequence[str], fusion: Fusion, recipe: Recipe, without: Set[int] = frozenset()
) -> list[PlannedOp]:
    kernels = Kernels(laid, ids, fusion, recipe)
    return [op for position in range(len(laid)) for op in kernels.forward(position) if position not in without]


def _trained(params: Mapping[str, Param], freeze: Iterable[str]) -> frozenset[str]:
    """Weights that no pattern freezes; raises ``UsageError`` for a pattern that matches nothing."""
    frozen: set[str] = set()
    for pattern in freeze:
        matched = {name for name in params if fnmatchcase(name, pattern)}
        if params and not matched:
            raise UsageError(
                f"--freeze {pattern!r}: no parameter of that name{did_you_mean(pattern, params)}; "
                f"patterns are the shell's, names such as {next(iter(params))!r}"
            )
        frozen |= matched
    weights = (name for name, param in params.items() if param.trainable and param.kind is ParamKind.WEIGHT)
    return frozenset(name for name in weights if name not in frozen)


def _tape(laid: Sequence[Laid], trained: Set[str], recipe: Recipe) -> list[TapeOp]:
    """Operators with a backward pass, in forward order."""
    if not recipe.trains:
        return []
    with_gradient: set[str] = set()
    tape = []
    for position, op in enumerate(laid):
        wrt = _needs_gradient(op.node, with_gradient, trained)
        if wrt:
            tape.append(TapeOp(position, wrt))
            specs = zip(op.node.output_names, op.node.outputs, strict=False)
            with_gradient.update(name for name, spec in specs if spec is None or spec.is_float)
    return tape


def _needs_gradient(node: OpNode, with_gradient: Set[str], trained: Set[str]) -> frozenset[int]:
    """Inputs of ``node`` whose gradient somebody needs."""
    wrt = {index for index, name in enumerate(node.input_names) if name in with_gradient}
    wrt |= {index for index, param in node.params if param.name in trained}
    if not wrt or not any(spec is None or spec.is_float for spec in node.outputs):
        return frozenset()
    return frozenset(wrt)


def _backward(
    kernels: Kernels, laid: Sequence[Laid], tape: Sequence[TapeOp], trained: Set[str]
) -> tuple[list[PlannedOp], dict[str, int]]:
    """The tape in reverse, and where in it each parameter's gradient is whole."""
    backward: list[PlannedOp] = []
    ready: dict[str, int] = {}
    begun: set[str] = set()
    rows: dict[str, int] = {}
    for one in reversed(tape):
        node = laid[one.position].node
        backward += kernels.backward(one)
        for index in sorted(one.wrt):
            stored = [param.name for param in node.params_at(index) if param.name in trained]
            names = {f"parameter {name}" for name in stored} or {_name(node, index)}
            if stored and by_rows(node, index):
                rows[stored[0]] = rows.get(stored[0], 0) + node.out.size_bytes * node.repeat
            spec = node.spec(index)
            if names & begun and spec is not None and spec.is_float:
                rows_bytes = rows[stored[0]] if stored and by_rows(node, index) else None
                backward.append(kernels.gradient_sum(one.position, index, rows_bytes))
            begun |= names
            ready.update((name, len(backward) - 1) for name in stored)
    return backward, ready


def _name(node: OpNode, index: int) -> str:
    return node.input_names[index] if index < len(node.input_names) else ""
