"""TF 1 control flow: loops as frames of Enter, Merge, Switch, NextIteration, Exit; conditions as Switch and Merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphcost.errors import GraphcostError, ModelFileError
from graphcost.frontends.tensorflow.body import FORWARDS, Body, NodeDef, Ref
from graphcost.frontends.tensorflow.loops import Loop, run_loop
from graphcost.frontends.tensorflow.values import Value
from graphcost.frontends.tensorflow.walk import Scope, Walk, opens

_ENTER = frozenset({"Enter", "RefEnter"})
_EXIT = frozenset({"Exit", "RefExit"})
_MERGE = frozenset({"Merge", "RefMerge"})
_NEXT = frozenset({"NextIteration", "RefNextIteration"})
_SWITCH = frozenset({"Switch", "RefSwitch"})


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """One variable of a frame: where it enters, comes round and is read; ``exits`` leave with its last value."""

    enter: NodeDef
    merge: NodeDef
    following: str
    switches: tuple[str, ...]
    exits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One loop. ``constants`` enter and stay the same."""

    name: str
    variables: tuple[LoopVariable, ...]
    constants: tuple[NodeDef, ...]
    condition: str


def frame_needs(body: Body) -> Callable[[NodeDef], list[Ref]] | None:
    """What a node depends on where loops and conditions are one step each; None for a body without them."""
    if "needs" not in body.derived:
        present = any(node.op in _SWITCH or node.op in _ENTER for node in body.nodes.values())
        body.derived["needs"] = (lambda node: _needs(body, node)) if present else None
    found: Callable[[NodeDef], list[Ref]] | None = body.derived["needs"]
    return found


def _needs(body: Body, node: NodeDef) -> list[Ref]:
    frame = _frames(body).get(node.name)
    if frame is not None and node.op in _EXIT:
        enters = [*(variable.enter for variable in frame.variables), *frame.constants]
        return [body.inputs(enter)[0] for enter in enters]
    if frame is None and node.op in _MERGE:
        closed = body.derived.setdefault("closed", {})
        if node.name not in closed:
            closed[node.name] = None
            switches = {ref.node: None for side in body.inputs(node) for ref in _switches_behind(body, side)}
            closed[node.name] = [ref for name in switches for ref in body.inputs(body.nodes[name])]
        found: list[Ref] | None = closed[node.name]
        if found is None:
            raise ModelFileError(f"node {node.name!r} depends on itself; a graph must have no circles")
        return found
    return body.inputs(node)


def _frames(body: Body) -> dict[str, Frame]:
    """Frames by the names of their Exit and Merge nodes."""
    if "frames" not in body.derived:
        body.derived["frames"] = _find_frames(body)
    found: dict[str, Frame] = body.derived["frames"]
    return found


def _find_frames(body: Body) -> dict[str, Frame]:
    readers: dict[str, list[NodeDef]] = {}
    for node in body.nodes.values():
        for ref in body.inputs(node):
            readers.setdefault(ref.node, []).append(node)
    entered: dict[str, list[NodeDef]] = {}
    for node in body.nodes.values():
        if node.op in _ENTER:
            entered.setdefault(node.attr["frame_name"].s.decode("utf-8", "replace"), []).append(node)
    found: dict[str, Frame] = {}
    for name, enters in entered.items():
        variables, constants, condition = [], [], ""
        for enter in enters:
            merge = next((reader for reader in readers.get(enter.name, ()) if reader.op in _MERGE), None)
            if merge is None:
                constants.append(enter)
                continue
            back = [body.nodes[ref.node] for ref in body.inputs(merge) if ref.node != enter.name]
            switches = [reader for reader in readers.get(merge.name, ()) if reader.op in _SWITCH]
            if not back or back[0].op not in _NEXT:
                raise ModelFileError(f"{merge.name} (Merge): the loop {name!r} has no NextIteration for it")
            for switch in switches:
                condition = condition or body.inputs(switch)[1].node
            exits = [r.name for switch in switches for r in readers.get(switch.name, ()) if r.op in _EXIT]
            variables.append(
                LoopVariable(enter, merge, back[0].input[0], tuple(s.name for s in switches), tuple(exits))
            )
        if not condition or not variables:
            raise ModelFileError(f"loop {name!r}: it has no condition; is the graph whole?")
        frame = Frame(name, tuple(variables), tuple(constants), condition)
        for variable in variables:
            found.update(dict.fromkeys((variable.merge.name, *variable.exits), frame))
    return found


@opens("Exit", "RefExit")
def run_frame(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The loop that this node leaves, whole; its other exits are settled with it."""
    body = scope.body
    frame = _frames(body).get(node.name)
    if frame is None:
        raise ModelFileError(f"{node.name} (Exit): it belongs to no loop")
    constants = {each.name: [scope.find(body.inputs(each)[0])] for each in frame.constants}
    formals_at = {name: i for i, var in enumerate(frame.variables) for name in (var.merge.name, *var.switches)}
    needs = frame_needs(body)
    test = str(body.nodes[frame.condition].input[0])

    def inner(formals: Sequence[Value], label: str, repeat: int) -> Scope:
        path = walk.unique(f"{scope.path}{frame.name.rstrip('/')}.{label}")
        made = Scope(body, f"{path}/", scope.owner, scope.repeat * repeat, scope.depth + 1, dict(scope.values))
        made.values |= constants
        for name, index in formals_at.items():
            made.values[name] = [formals[index], formals[index]]
        return made

    def behind(text: str) -> frozenset[int]:
        ref = body.ref(text)
        reached = [
            ref,
            *(r for each in body.order([text], formals_at.__contains__, needs) for r in body.inputs(each)),
        ]
        return frozenset(formals_at[r.node] for r in reached if r.node in formals_at)

    def same(index: int, text: str) -> bool:
        ref = body.ref(text)
        while ref.node not in formals_at and body.nodes[ref.node].op in FORWARDS:
            ref = body.inputs(body.nodes[ref.node])[0]
        return formals_at.get(ref.node) == index

    following = [variable.following for variable in frame.variables]
    loop = Loop(
        name=frame.name.rstrip("/"),
        kind="while loop",
        inputs=tuple(scope.find(body.inputs(variable.enter)[0]) for variable in frame.variables),
        invariant=frozenset(i for i, text in enumerate(following) if same(i, text)),
        condition_reads=behind(test),
        body_reads=tuple(behind(text) for text in following),
        condition_ops=frozenset(n.op for n in body.order([test], lambda x: x in formals_at or x in constants, needs)),
        condition=lambda formals: walk.results(inner(formals, "cond", 1), [test])[0],
        body=lambda formals, label, repeat, wanted: walk.results(
            inner(formals, label, repeat), [following[i] for i in wanted]
        ),
    )
    results = run_loop(walk, loop, scope)
    for variable, value in zip(frame.variables, results, strict=True):
        for name in variable.exits:
            scope.values[name] = [value]
    return scope.values[node.name]


@opens("Enter", "RefEnter", "NextIteration", "RefNextIteration", "LoopCond")
def forward(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """Passes its input on."""
    return inputs[:1]


@opens("Switch", "RefSwitch")
def switch(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The value, on whichever side is taken: false, true."""
    return [inputs[0], inputs[0]]


@opens("Merge", "RefMerge")
def merge(walk: Walk, node: NodeDef, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    """The side that its condition selects where that is known, else the dearer one."""
    body = scope.body
    texts = [text for text in node.input if not text.startswith("^")]
    sides = {text: _switches_behind(body, body.ref(text)) for text in texts}
    chosen = next((text for text, refs in sides.items() if any(_selected(scope, ref) for ref in refs)), None)
    if chosen is None and len(texts) == 2:  # the one that is not excluded: a side may hold constants alone
        excluded = [text for text, refs in sides.items() if any(_selected(scope, ref) is False for ref in refs)]
        chosen = next((text for text in texts if text not in excluded), None) if len(excluded) == 1 else None
    if not texts:
        raise ModelFileError(f"{node.name} (Merge): it has no inputs")
    tried, failures = {}, []
    for text in texts:
        trial = replace(scope, values=dict(scope.values))
        with walk.collecting() as nodes:
            try:
                value = walk.results(trial, [text])[0]
            except GraphcostError as error:
                if text == chosen:
                    raise
                failures.append(error)
                continue
            tried[text] = (value, nodes, trial)
    if not tried:
        raise failures[0]
    taken = chosen or max(tried, key=lambda text: walk.cost_of(tried[text][1]))
    for text, (_, nodes, trial) in tried.items():
        if text == taken:
            walk.nodes.extend(nodes)
            scope.values.update(trial.values)
        else:
            walk.keep_params(nodes)
    value = tried[taken][0]
    index = walk.fresh(f"{scope.path}{node.name}:1", 3, ())
    if chosen is not None:
        return [value, index]
    walk.note(f"Merge {node.name!r}: its condition is not known; the dearer branch ({taken}) is counted")
    return [replace(value, data=None, constant=False, leaves=()), index]


def _selected(scope: Scope, ref: Ref) -> bool | None:
    """Whether the side of a Switch that ``ref`` reads is taken; None where its condition is not known."""
    predicate = scope.find(scope.body.inputs(scope.body.nodes[ref.node])[1])
    if predicate.data is None or predicate.data.size != 1:
        return None
    return bool(predicate.data.reshape(-1)[0]) == (ref.index == 1)


def _switches_behind(body: Body, start: Ref) -> list[Ref]:
    """The nearest Switch outputs that ``start`` depends on, inside the condition that a Merge closes."""
    found: dict[Ref, None] = {}
    seen: set[str] = set()
    stack = [start]
    while stack:
        ref = stack.pop()
        node = body.nodes.get(ref.node)
        if node is None:
            continue
        if node.op in _SWITCH:
            found[ref] = None
        elif ref.node not in seen:
            seen.add(ref.node)
            stack.extend(_needs(body, node))
    return list(found)
