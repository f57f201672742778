"""Memory over the step as bands over time, from every moment of the plan's walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from graphcost.counts import MemoryInfo
from graphcost.report import palette
from graphcost.result import Analysis
from graphcost.training import Moment

MOST_MOMENTS = 400
"""What a chart's width shows; of moments that share a place the fullest is kept, so that the peak is."""


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """Bytes by category (``palette.MEMORY``) at every ``x``; ``phases``: (name, begin, end).

    ``unit``: ``s``, the GPU's busy time of one micro-batch without waiting, or ``operators``
    under a profile that times none.
    """

    unit: str
    x: tuple[float, ...]
    bands: Mapping[str, tuple[int, ...]]
    phases: tuple[tuple[str, float, float], ...]


def memory_timeline(r: Analysis) -> MemoryTimeline | None:
    """None where the result was made without its moments."""
    if r.details is None or not r.details.memory:
        return None
    moments = r.details.memory
    ends = _ends(r)
    places = _places(moments, ends)
    phases: list[tuple[str, float, float]] = []
    for name, group in groupby(zip(moments, places, strict=True), key=lambda pair: pair[0].phase):
        last = [place for _, place in group][-1]
        phases.append((name, phases[-1][2] if phases else 0.0, last))
    kept = _fullest(moments, places)
    held, whole = r.training.memory, sum(gradient.sent_bytes for gradient in r.details.gradients)
    return MemoryTimeline(
        unit="s" if ends else "operators",
        x=tuple(places[index] for index in kept),
        bands={
            name: tuple(_bytes(name, moments[index], held, whole) for index in kept)
            for name in palette.MEMORY
            if any(_bytes(name, moments[index], held, whole) for index in kept)
        },
        phases=tuple(phases),
    )


def _bytes(name: str, moment: Moment, held: MemoryInfo, whole: int) -> int:
    """Weights, state, buffers and communication's copies stand all the time; the others come and go.

    ``whole``: all gradients of a replica; where an architecture divides them, each moment holds its share.
    """
    return {
        "weights": held.weights_bytes,
        "optimizer": held.optimizer_bytes,
        "buffers": held.buffers_bytes,
        "communication": held.bucket_bytes,
        "gradients": -(-moment.gradient_bytes * held.gradients_bytes // whole) if whole else 0,
        "activations": moment.kept_bytes,
        "temporary": moment.temporary_bytes,
    }[name]


def _ends(r: Analysis) -> dict[tuple[str, str], float]:
    """When the last kernel of (operator, phase) is done, in seconds of busy GPU; empty without times."""
    clock, ends = 0.0, {}
    for one in r.predicted.ops if r.predicted is not None else ():
        clock += one.time.time_s
        ends[one.op.id, str(one.op.phase)] = clock
        ends["", str(one.op.phase)] = clock
    return ends


def _places(moments: Sequence[Moment], ends: Mapping[tuple[str, str], float]) -> list[float]:
    """Where each moment stands; never before the one it follows."""
    if not ends:
        return [float(index) for index in range(len(moments))]
    places, at = [], 0.0
    for moment in moments:
        at = max(at, ends.get((moment.op_id, moment.phase), 0.0))
        places.append(at)
    return places


def _fullest(moments: Sequence[Moment], places: Sequence[float]) -> list[int]:
    """Indices of the moments to draw: the fullest of each of ``MOST_MOMENTS`` equal spans, and both ends."""
    span = (places[-1] - places[0]) / MOST_MOMENTS or 1.0
    best: dict[int, int] = {}
    for index, place in enumerate(places):
        cell = int((place - places[0]) / span)
        if cell not in best or moments[index].total_bytes > moments[best[cell]].total_bytes:
            best[cell] = index
    return sorted({0, len(moments) - 1, *best.values()})
