"""Loops of any notation: the body once, repeated trip-count times.

The trip count follows from the loop's own counter where that starts from known values;
otherwise the user is asked. Where shapes change from trip to trip, trip by trip.
(COST_MODEL, Definitions.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphcost.errors import MissingSizeError, UsageError
from graphcost.frontends.tensorflow.rebatch import initial_state
from graphcost.frontends.tensorflow.values import Array, ListState, Value

if TYPE_CHECKING:
    from graphcost.frontends.tensorflow.walk import Scope, Walk

UNROLL_TRIPS = 512
"""Trips walked one by one where the body's shapes change or no counter is found; assumed: enough for such loops."""

_ENDLESS = 2**40

# With one counter that moves evenly, a condition of these turns false once and stays so.
_MONOTONE = frozenset({"Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "Identity", "Const", "Cast"})


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: ``condition`` and ``body`` are walked with values for its variables.

    ``invariant`` variables keep their value; ``condition_reads`` and ``body_reads[i]`` are
    the variables that the condition and the new value of variable ``i`` depend on.
    ``body(formals, label, repeat, wanted)`` returns the wanted variables' new values.
    """

    name: str
    kind: str
    inputs: tuple[Value, ...]
    invariant: frozenset[int]
    condition_reads: frozenset[int]
    body_reads: tuple[frozenset[int], ...]
    condition_ops: frozenset[str]
    condition: Callable[[Sequence[Value]], Value]
    body: Callable[[Sequence[Value], str, int, Sequence[int]], list[Value]]


def run_loop(walk: Walk, loop: Loop, scope: Scope) -> list[Value]:
    """The loop's results; its operators are emitted with ``repeat``."""
    starts = (v if i in loop.invariant else initial_state(walk, v) for i, v in enumerate(loop.inputs))
    loop = replace(loop, inputs=tuple(starts))
    trips = _trip_count(walk, loop, scope)
    everything = range(len(loop.inputs))
    if trips == 0:
        with walk.trial() as nodes:
            loop.body(_formals(walk, loop), "body", 1, everything)
        walk.keep_params(nodes)
        return list(loop.inputs)
    formals = _formals(walk, loop)
    with walk.collecting() as nodes:
        outputs = loop.body(formals, "body", trips, everything)
    if _changes(loop, formals, outputs):
        if trips > UNROLL_TRIPS:
            raise MissingSizeError(
                f"{loop.kind} {loop.name!r}: a size changes over its {trips} trips (at most "
                f"{UNROLL_TRIPS} are walked one by one); give --input-value {loop.name}=N with a smaller N"
            )
        return _unrolled(loop, trips)
    walk.nodes.extend(nodes)
    return [
        before if index in loop.invariant else _after(before, formal, after, trips)
        for index, (before, formal, after) in enumerate(zip(loop.inputs, formals, outputs, strict=True))
    ]


def _formals(walk: Walk, loop: Loop) -> list[Value]:
    return [
        value if index in loop.invariant else walk.forget(value, value.name)
        for index, value in enumerate(loop.inputs)
    ]


def _changes(loop: Loop, formals: Sequence[Value], outputs: Sequence[Value]) -> bool:
    return any(
        before.spec is not None and after.spec is not None and before.spec != after.spec
        for index, (before, after) in enumerate(zip(formals, outputs, strict=True))
        if index not in loop.invariant
    )


def _unrolled(loop: Loop, trips: int) -> list[Value]:
    values = list(loop.inputs)
    for trip in range(trips):
        values = loop.body(values, f"body.{trip}", 1, range(len(values)))
    return values


def _after(before: Value, formal: Value, after: Value, trips: int) -> Value:
    """A variable after the last trip: its content is not known; a list may have grown every trip."""
    result = replace(after, data=None, constant=False, leaves=())
    if after.items is None or formal.items is None:
        return result
    count = after.items.count
    if count is not None and formal.items.count is not None:
        count = formal.items.count + trips * (count - formal.items.count)
    return replace(result, items=ListState(after.items.element or formal.items.element, count))


def _trip_count(walk: Walk, loop: Loop, scope: Scope) -> int:
    given = walk.given(loop.name) or walk.given(scope.path + loop.name)
    if given is not None:
        if not 0 <= given[0] < _ENDLESS or given[0] != int(given[0]):
            raise UsageError(f"--input-value {loop.name}: a {loop.kind} cannot take {given[0]} trips")
        return int(given[0])
    steering = set(loop.condition_reads)
    while grown := {i for var in steering for i in loop.body_reads[var]} - steering:
        steering |= grown
    unknown = [loop.inputs[index] for index in sorted(steering) if loop.inputs[index].data is None]
    trips = None if unknown else _count(walk, loop, sorted(steering))
    if trips is None:
        source = next((value.name for value in unknown if _is_count(value) and value.name in walk.inputs), loop.name)
        raise MissingSizeError(
            f"{loop.kind} {loop.name!r}: its trip count is not known; give --input-value {source}=N"
        )
    return trips


def _is_count(value: Value) -> bool:
    return value.spec is not None and value.spec.numel == 1 and "int" in value.spec.dtype


def _count(walk: Walk, loop: Loop, steering: Sequence[int]) -> int | None:
    """Trips of a loop whose steering variables start from known values; None where they get lost."""
    moving = [index for index in steering if index not in loop.invariant]
    state = {index: data for index in steering if (data := loop.inputs[index].data) is not None}
    formals = _formals(walk, loop)

    def at(now: dict[int, Array]) -> list[Value]:
        placed = list(formals)
        for index in moving:
            value = loop.inputs[index]
            placed[index] = walk.known(value.name, value.dtype, now[index])
        return placed

    def goes_on(now: dict[int, Array]) -> bool | None:
        with walk.trial():
            data = loop.condition(at(now)).data
        return None if data is None or data.size != 1 else bool(data.reshape(-1)[0])

    def step(now: dict[int, Array]) -> dict[int, Array] | None:
        with walk.trial():
            results = loop.body(at(now), "body", 1, moving)
        if any(value.data is None for value in results):
            return None
        return now | {
            index: value.data for index, value in zip(moving, results, strict=True) if value.data is not None
        }

    def goes_on_after(deltas: dict[int, npt.NDArray[np.int64]], trips: int) -> bool | None:
        moved = {i: (state[i].astype(np.int64) + trips * delta).astype(state[i].dtype) for i, delta in deltas.items()}
        return goes_on(state | moved)

    history = [state]
    while len(history) <= UNROLL_TRIPS:
        more = goes_on(history[-1])
        if more is None or not more:
            return None if more is None else len(history) - 1
        following = step(history[-1])
        if following is None:
            return None
        history.append(following)
        if len(history) == 3 and loop.condition_ops <= _MONOTONE:
            deltas = _even_steps(history, moving)
            if deltas is not None:
                return _first_false(partial(goes_on_after, deltas))
    return None


def _even_steps(
    history: Sequence[dict[int, Array]], moving: Sequence[int]
) -> dict[int, npt.NDArray[np.int64]] | None:
    """How far each variable moves per trip, if it is the same for both trips seen."""
    deltas: dict[int, npt.NDArray[np.int64]] = {}
    for index in moving:
        first, second, third = (state[index] for state in history[:3])
        if first.dtype.kind not in "iu" or first.shape != third.shape:
            return None
        wide = [array.astype(np.int64) for array in (first, second, third)]
        if not np.array_equal(wide[1] - wide[0], wide[2] - wide[1]):
            return None
        deltas[index] = wide[1] - wide[0]
    return deltas


def _first_false(goes_on: Callable[[int], bool | None]) -> int | None:
    """The number of trips after which the condition is false for the first time."""
    high = 1
    while goes_on(high):
        high *= 2
        if high >= 2**31:  # a 32-bit counter would have wrapped: it never ends by this condition
            return None
    low = high // 2
    while low < high:
        middle = (low + high) // 2
        if goes_on(middle):
            low = middle + 1
        else:
            high = middle
    return low
