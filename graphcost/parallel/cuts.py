"""Where a pipeline cuts a graph: a topological order in runs of equal time.

A place between two operators is worth a cut where few values cross it: the residual stream
of a network of blocks is one. Among such places the slowest run, with what it receives, is
made as fast as it can be: a binary search over its time, each guess filled greedily.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphcost.errors import PlacementError
from graphcost.ir import Model

WORTH = 0.9
"""assumed: a cut through more values must make the slowest run a tenth faster."""

_STEPS = 20
"""Halvings of the interval that the slowest run's time lies in: to a millionth of it."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Values that cross the place before operator ``position``, and their elements on one GPU."""

    position: int
    values: tuple[str, ...]
    numel: int


def crossings(model: Model) -> tuple[Crossing, ...]:
    """Every place between two operators, in order, with the values made before it and read after it."""
    last: dict[str, int] = {}
    size: dict[str, int] = {}
    for position, node in enumerate(model.nodes):
        last.update((name, position) for name in node.input_names if name in size)
        size.update(
            (name, spec.numel) for name, spec in zip(node.output_names, node.outputs, strict=False) if name and spec
        )
    found, alive = [], dict[str, int]()
    for position, node in enumerate(model.nodes):
        if position:
            alive = {name: numel for name, numel in alive.items() if last.get(name, -1) >= position}
            found.append(Crossing(position, tuple(alive), sum(alive.values())))
        alive.update((name, size[name]) for name in node.output_names if name in size)
    return tuple(found)


def blocks(model: Model) -> int:
    """Repeated blocks by their modules' names (``layers.0`` to ``layers.31``); 0 where names tell nothing."""
    found: dict[str, set[int]] = {}
    for node in model.nodes:
        block = _block(node.module)
        if block is not None:
            found.setdefault(block[0], set()).add(block[1])
    return sum(len(numbers) for numbers in found.values() if len(numbers) > 1)


def _block(module: str) -> tuple[str, int] | None:
    """``h.3.attn`` -> ``h``, 3."""
    parts = module.split(".")
    at = next((index for index, part in enumerate(parts) if part.isdecimal()), None)
    return None if at is None else (".".join(parts[:at]), int(parts[at]))


def cut_by_layers(model: Model, places: Sequence[Crossing], runs: int) -> tuple[Crossing, ...]:
    """``runs - 1`` of ``places``: before blocks, as many a run as can be; what precedes and follows them at the ends.

    Raises ``PlacementError`` where the graph tells fewer blocks than runs.
    """
    if runs == 1:
        return ()
    starts: dict[tuple[str, int], int] = {}
    for position, node in enumerate(model.nodes):
        block = _block(node.module)
        if block is not None:
            starts.setdefault(block, position)
    if len(starts) < runs:
        raise PlacementError(f"cut=layers: {runs} stages are more than the {len(starts)} layers of {model.name}")
    first = list(starts.values())
    wanted = [first[len(first) * run // runs] for run in range(1, runs)]
    by_position = {place.position: place for place in places}
    return tuple(by_position[position] for position in wanted)


def cut(
    model: Model,
    places: Sequence[Crossing],
    seconds: Sequence[float],
    runs: int,
    send_s: Callable[[int], float],
) -> tuple[Crossing, ...]:
    """``runs - 1`` of ``places``; ``seconds`` by operator, ``send_s`` of so many elements that cross.

    Raises ``PlacementError`` where the graph has fewer blocks, or places, than runs.
    """
    if runs == 1:
        return ()
    layers = blocks(model)
    if 0 < layers < runs:
        raise PlacementError(f"{runs} stages are more than the {layers} layers of {model.name}")
    narrowest = sorted({len(place.values) for place in places if place.values})
    best: tuple[float, tuple[Crossing, ...]] | None = None
    for width in narrowest[:3]:
        among = [place for place in places if 0 < len(place.values) <= width]
        if len(among) < runs - 1:
            continue
        found = _balanced(among, seconds, runs, send_s)
        if best is None or found[0] < WORTH * best[0]:
            best = found
        if best[0] * WORTH <= sum(seconds) / runs:
            break  # equal runs would not be a tenth faster
    if best is None:
        most = sum(1 for place in places if 0 < len(place.values) <= (narrowest or [0])[:3][-1]) + 1
        raise PlacementError(f"{runs} stages are more than {model.name} can be cut into ({most})")
    return best[1]


def _balanced(
    places: Sequence[Crossing], seconds: Sequence[float], runs: int, send_s: Callable[[int], float]
) -> tuple[float, tuple[Crossing, ...]]:
    """The slowest run's time, and the cuts: exactly ``runs - 1``."""
    until = [0.0]
    for one in seconds:
        until.append(until[-1] + one)
    work = [until[place.position] for place in places]
    sent = [send_s(place.numel) for place in places]
    low, high = until[-1] / runs, until[-1] + 2 * max(sent)
    chosen = _filled(work, sent, until[-1], runs, high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = _filled(work, sent, until[-1], runs, middle)
        if found is None:
            low = middle
        else:
            high, chosen = middle, found
    assert chosen is not None
    return high, tuple(places[index] for index in chosen)


def _filled(work: Sequence[float], sent: Sequence[float], total: float, runs: int, limit: float) -> list[int] | None:
    """Cuts that leave no run over ``limit``: each as late as it can be, one place kept for every run to come."""
    chosen: list[int] = []
    start, entry = 0.0, 0.0
    for run in range(runs - 1):
        least = chosen[-1] + 1 if chosen else 0
        most = len(work) - (runs - 1 - run)
        index = min(bisect_right(work, start + limit - entry) - 1, most)
        while index >= least and work[index] - start + entry + sent[index] > limit:
            index -= 1
        if index < least:
            return None
        chosen.append(index)
        start, entry = work[index], sent[index]
    return chosen if total - start + entry <= limit else None
