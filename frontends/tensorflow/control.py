"""Functional control flow: If, Case, While.

A branch that its condition selects where that is known, else the dearer one; the
parameters of the others stay with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphcost.errors import GraphcostError, ModelFileError
from graphcost.frontends.tensorflow.body import Body, NodeDef
from graphcost.frontends.tensorflow.loops import Loop, run_loop
from graphcost.frontends.tensorflow.values import Value
from graphcost.frontends.tensorflow.walk import Scope, Walk, opens


@opens("If", "StatelessIf")
def run_if(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Condition, then what both branches are given."""
    branches = {key: walk.function(node.attr[f"{key}_branch"].func.name, node) for key in ("then", "else")}
    data = inputs[0].data
    chosen = None
    if data is not None:
        true = bool(data.reshape(-1)[0]) if data.ndim == 0 else data.size > 0
        chosen = "then" if true else "else"
    return _branch(walk, node, branches, chosen, inputs[1:], scope)


@opens("Case", "StatelessCase")
def run_case(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Branch number, then what all branches are given; a number out of range takes the last."""
    names = [func.name for func in node.attr["branches"].list.func]
    branches = {f"branch{i}": walk.function(name, node) for i, name in enumerate(names)}
    chosen = None
    if inputs[0].data is not None:
        index = int(inputs[0].data.reshape(-1)[0])
        chosen = f"branch{index if 0 <= index < len(names) else len(names) - 1}"
    return _branch(walk, node, branches, chosen, inputs[1:], scope)


def _branch(
    walk: Walk, node: NodeDef, branches: dict[str, Body], chosen: str | None, inputs: list[Value], scope: Scope
) -> Sequence[Value]:
    if not branches or any(len(body.arguments) != len(inputs) for body in branches.values()):
        raise ModelFileError(f"{node.name} ({node.op}): its branches must take {len(inputs)} values")
    tried, failures = {}, []
    for label, body in branches.items():
        with walk.collecting() as nodes:
            try:
                results = walk.call(body, inputs, node, scope, label=label)
            except GraphcostError as error:  # a branch that cannot run for these sizes is not the one taken
                if label == chosen:
                    raise
                failures.append(error)
                continue
            tried[label] = (results, nodes)
    if not tried:
        raise failures[0]
    taken = chosen or max(tried, key=lambda label: walk.cost_of(tried[label][1]))
    for label, (_, nodes) in tried.items():
        if label == taken:
            walk.nodes.extend(nodes)
        else:
            walk.keep_params(nodes)
    results = tried[taken][0]
    if chosen is not None:
        return results
    walk.note(f"{node.op} {node.name!r}: its condition is not known; the dearer branch ({taken}) is counted")
    return [replace(value, data=None, constant=False, leaves=()) for value in results]


@opens("While", "StatelessWhile")
def run_while(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Loop variables; condition and body are functions of all of them."""
    condition = walk.function(node.attr["cond"].func.name, node)
    body = walk.function(node.attr["body"].func.name, node)
    count = len(inputs)
    if (len(body.arguments), len(body.results), len(condition.arguments)) != (count, count, count):
        raise ModelFileError(f"{node.name} (While): condition and body must take, and the body give, {count} values")
    if len(condition.results) != 1:
        raise ModelFileError(f"{node.name} (While): its condition must give one value")
    positions = {name: index for index, name in enumerate(body.arguments)}
    reads = tuple(frozenset(positions[name] for name in body.arguments_behind(text)) for text in body.results)
    condition_positions = {name: index for index, name in enumerate(condition.arguments)}
    behind = condition.arguments_behind(condition.results[0])
    invariant = {i for i, text in enumerate(body.results) if body.source(text).node == body.arguments[i]}
    loop = Loop(
        name=node.name,
        kind="While",
        inputs=tuple(inputs),
        invariant=frozenset(invariant),
        condition_reads=frozenset(condition_positions[name] for name in behind),
        body_reads=reads,
        condition_ops=frozenset(each.op for each in condition.order(condition.results[:1])),
        condition=lambda formals: walk.call(condition, formals, node, scope, label="cond")[0],
        body=lambda formals, label, repeat, wanted: walk.call(
            body, formals, node, scope, label=label, repeat=repeat, wanted=[body.results[i] for i in wanted]
        ),
    )
    return run_loop(walk, loop, scope)
