"""What a graph says beyond its operators: the training step that it takes itself, where its variables lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphcost.errors import GraphcostError
from graphcost.frontends.tensorflow.body import Body
from graphcost.frontends.tensorflow.program import Program
from graphcost.frontends.tensorflow.train_graph import VARIABLES
from graphcost.ir import Param, ParamKind
from graphcost.units import format_bytes, format_flops

if TYPE_CHECKING:
    from graphcost.frontends.tensorflow.walk import Walk

_TAPE = (
    "some outputs are gradients (operators under gradient_tape/), which are counted as a forward pass; "
    "name a signature or function that ends at the loss"
)
_PARAMETER_SERVER = re.compile(r"/job:ps(?:/|$)(?:.*/)?task:(\d+)")


def training_notes(program: Program, walk: Walk, used: Mapping[str, Param]) -> tuple[str, ...]:
    """The graph's own gradients and optimizer, which are recognised and not counted a second time.

    ``used`` are the parameters of the forward pass, by name. The FLOPs of the backward pass
    are those that the gradients' data needs; TF 1's control dependencies also run the
    gradient of the first layer's input, which nothing reads.
    """
    training = program.training
    if training is None:
        return (_TAPE,) if any("gradient_tape/" in node.name for node in walk.nodes) else ()
    own = f"its own {len(training.gradients)} gradient operators"
    flops = _backward_flops(training.applied, walk)
    if flops is not None:
        own += f" ({format_flops(flops)} in products and convolutions)"
    if training.updated:
        by = " and ".join(training.optimizers) or "plain assignments"
        own += f" and updates ({by}; {_trained(used)})"
    losses = ", ".join(map(repr, program.outputs)) or "none"
    notes = [
        f"a training graph: {own} are recognised and not counted; what is counted is its forward pass to {losses}, "
        "and backward and update follow by rule"
    ]
    if training.nested:
        notes.append("a loss of the graph needs gradients itself; that part of its forward pass is not counted")
    return tuple(notes)


def placed(body: Body, used: Mapping[str, Param]) -> tuple[str, ...]:
    """Which parameter server holds how many of the variables that the forward pass uses."""
    held: dict[int, list[int]] = {}
    for node in body.nodes.values():
        found = _PARAMETER_SERVER.match(node.device) if node.op in VARIABLES and node.name in used else None
        if found is not None:
            held.setdefault(int(found[1]), []).append(used[node.name].stored_bytes)
    if not held:
        return ()
    listed = (f"task {task} {len(sizes)} ({format_bytes(sum(sizes))})" for task, sizes in sorted(held.items()))
    return (f"variables are placed on parameter servers: {', '.join(listed)}",)


def _backward_flops(applied: tuple[str, ...], walk: Walk) -> int | None:
    """Matmul-class FLOPs of the graph's own backward pass; None where its shapes cannot be followed."""
    try:
        return walk.cost_of(walk.beyond(applied))[0]
    except GraphcostError:
        return None


def _trained(used: Mapping[str, Param]) -> str:
    weights = [param for param in used.values() if param.kind is ParamKind.WEIGHT]
    trained = sum(param.trainable for param in weights)
    return f"{trained} of {len(weights)} weights trained"
