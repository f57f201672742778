"""Training graphs of TensorFlow 1: which nodes are the forward pass, which its gradients, which the optimizer.

``tf.gradients`` puts what it adds for the operator ``X`` under ``<scope>/X_grad/``, so that
the scope, the operators it was asked about and the loss (the one that no other needs) follow
from names that it alone makes. Whatever reads a gradient lies behind the forward pass:
clipping, averaging, optimizer nodes. Source: tensorflow/python/ops/gradients_util.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from graphcost.frontends.tensorflow.body import FORWARDS, Body, NodeDef

_OPTIMIZER = re.compile(r"(?:Resource)?(?:Sparse)?Apply(\w+?)(?:V\d)?")
_BACKWARD = re.compile(r"\w+(?:Grad|BackpropFilter)(?:V\d)?")
"""Operators that exist only as some other operator's gradient; Conv2DBackpropInput is also a layer of its own."""

_WRITES = frozenset(
    f"{kind}{form}"
    for kind in ("Assign", "AssignAdd", "AssignSub")
    for form in ("", "VariableOp")
) | frozenset(
    f"{prefix}Scatter{form}"
    for prefix in ("", "Resource")
    for form in ("Add", "Sub", "Update", "NdAdd", "NdSub", "NdUpdate")
)  # fmt: skip
"""Optimizers without a kernel of their own write the variable by these."""

_KEPT_FOR_BACKWARD = frozenset({"EmptyTensorList", "StackV2", "Stack"})
"""Made by the gradient of a loop, filled by the loop itself."""

VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_NO_WORK = FORWARDS | {"Const", "NoOp", "IdentityN"}

# Operators whose gradient is what comes in, so that tf.gradients adds nothing for them.
_TRANSPARENT = FORWARDS | {"Add", "AddV2", "AddN", "IdentityN"}


@dataclass(frozen=True, slots=True)
class Training:
    """A training step found in a graph, by names of nodes.

    ``losses`` end the forward pass. ``behind`` are all nodes that need a gradient,
    ``gradients`` those of them that work, ``applied`` those that leave the
    backward pass (for clipping, averaging, updates; else those that nothing reads).
    ``optimizers`` are names as in ``ResourceApplyAdam``; ``updated`` are the variables that
    the graph writes from gradients, True where by rows. ``nested``: a loss needs gradients itself.
    """

    losses: tuple[str, ...]
    behind: frozenset[str]
    gradients: tuple[str, ...]
    applied: tuple[str, ...]
    optimizers: tuple[str, ...] = ()
    updated: Mapping[str, bool] = field(default_factory=dict)
    nested: bool = False


def find_training(body: Body) -> Training | None:
    """The training step in a graph; None for a graph without gradient or optimizer nodes.

    Time is linear in nodes and references.
    """
    scopes, differentiated = _scopes(body)
    prefixes = tuple(f"{scope}/" for scope in scopes)
    backward = {
        name for name, node in body.nodes.items()
        if (name.startswith(prefixes) and node.op not in _KEPT_FOR_BACKWARD) or _BACKWARD.fullmatch(node.op)
    }  # fmt: skip
    roots = backward | {name for name, node in body.nodes.items() if _OPTIMIZER.fullmatch(node.op)}
    if not roots:
        return None
    readers = _readers(body)
    behind = _reach(roots, readers)
    updates = [body.nodes[name] for name in body.nodes if name in behind and _is_update(body.nodes[name])]
    written = {node.name for node in updates}
    gradients = tuple(
        name for name, node in body.nodes.items()
        if name in behind and name not in written and node.op not in _NO_WORK
    )  # fmt: skip
    leaving = [name for name in body.nodes if name in backward and _leaves(body, readers.get(name, ()), backward)]
    return Training(
        losses=tuple(_losses(body, differentiated, gradients, behind, readers)),
        behind=frozenset(behind),
        gradients=gradients,
        applied=tuple(leaving or (name for name in gradients if not readers.get(name))),
        optimizers=tuple(sorted({found[1] for node in updates if (found := _OPTIMIZER.fullmatch(node.op))})),
        updated=_updated(body, updates),
        nested=not differentiated.isdisjoint(behind),
    )


def forward_outputs(training: Training, outputs: Mapping[str, str]) -> dict[str, str]:
    """``outputs`` (name -> reference) with gradients and updates replaced by the losses they come from."""
    kept = {key: text for key, text in outputs.items() if text.split(":")[0] not in training.behind}
    return kept if len(kept) == len(outputs) else {**kept, **{name: name for name in training.losses}}


def _scopes(body: Body) -> tuple[set[str], set[str]]:
    """Scopes of ``tf.gradients`` and the operators that they differentiate."""
    heads = {
        name[: found.start()] for name in body.nodes if "_grad/" in name for found in re.finditer("_grad/", name)
    }
    scopes, differentiated = set(), set()
    for head in heads:
        for cut in (found.start() for found in re.finditer("/", head)):
            scope, name = head[:cut], head[cut + 1 :]
            if name in body.nodes and "grad" in scope.rpartition("/")[2].lower():
                scopes.add(scope)
                differentiated.add(name)
                break
    return scopes, differentiated


def _losses(
    body: Body, differentiated: set[str], gradients: Iterable[str], behind: set[str], readers: Mapping[str, list[str]]
) -> list[str]:
    """What was differentiated and nothing else that was needs; else where the forward pass ends."""
    inner = _behind_in_time(body, [text for name in differentiated for text in _needs(body.nodes[name])])
    ends = [name for name in body.nodes if name in differentiated and name not in inner and name not in behind]
    transparent: frozenset[str] | None = _TRANSPARENT
    if not ends:  # the names are not TensorFlow's own, or the loss needs gradients itself
        forward = _behind_in_time(body, gradients) - behind
        ends = [
            name for name in body.nodes
            if name in forward and name in readers and not forward.intersection(readers[name])
            and body.nodes[name].op not in VARIABLES | _NO_WORK
        ]  # fmt: skip
        transparent = None
    return list(dict.fromkeys(_followed(body, name, behind, readers, transparent) for name in ends))


def _followed(
    body: Body, name: str, behind: set[str], readers: Mapping[str, list[str]], through: frozenset[str] | None
) -> str:
    """``name``, or what its only forward readers make of it (None: by any operator)."""
    passed = {name}
    while True:
        following = {r for r in readers.get(name, ()) if r not in behind and "Summary" not in body.nodes[r].op}
        if len(following) != 1 or following <= passed:
            return name
        (reader,) = following
        if through is not None and body.nodes[reader].op not in through:
            return name
        passed.add(reader)
        name = reader


def _updated(body: Body, updates: Iterable[NodeDef]) -> dict[str, bool]:
    """Variables that are written, and whether by rows; a slot (``v/Adam``) written by rows tells it of ``v``."""
    found: dict[str, bool] = {}
    for node in updates:
        if not _needs(node):
            continue
        name = body.source(_needs(node)[0]).node
        if name not in body.nodes or body.nodes[name].op not in VARIABLES:
            continue
        by_rows = "Sparse" in node.op or "Scatter" in node.op
        found[name] = found.get(name, False) or by_rows
        primary = name.rpartition("/")[0]
        if by_rows and primary in body.nodes:
            found[primary] = True
    return found


def _is_update(node: NodeDef) -> bool:
    return node.op in _WRITES or _OPTIMIZER.fullmatch(node.op) is not None


def _leaves(body: Body, readers: Iterable[str], backward: set[str]) -> bool:
    return any(name not in backward and "Summary" not in body.nodes[name].op for name in readers)


def _needs(node: NodeDef) -> list[str]:
    """Names of the nodes whose results ``node`` reads."""
    return [text.partition(":")[0] for text in node.input if not text.startswith("^")]


def _readers(body: Body) -> dict[str, list[str]]:
    """Who reads whom, apart from what the gradients of loops keep of the forward pass: that is no dependency."""
    found: dict[str, list[str]] = {}
    for node in body.nodes.values():
        if node.op in _KEPT_FOR_BACKWARD:
            continue
        for name in _needs(node):
            found.setdefault(name, []).append(node.name)
    return found


def _reach(roots: Iterable[str], edges: Mapping[str, list[str]]) -> set[str]:
    """``roots`` and all that lies behind them."""
    found: set[str] = set()
    stack = list(roots)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(edges.get(name, ()))
    return found


def _behind_in_time(body: Body, names: Iterable[str]) -> set[str]:
    """``names`` and all that they need."""
    found: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in found and name in body.nodes:
            found.add(name)
            stack.extend(_needs(body.nodes[name]))
    return found
