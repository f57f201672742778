"""A step as a Chrome trace, for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

One process a model, one thread a lane. Every slice says its operator, bytes and FLOPs,
and which part of the step it counts into: the slices of a part add up to it.
Source: Trace Event Format (Google, 2016), complete events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from graphcost.errors import UsageError
from graphcost.predict.lanes import Slice
from graphcost.result import Analysis


def trace_report(results: Sequence[Analysis], **_: Any) -> str:
    """Trace JSON of one or several results; raises ``UsageError`` where there is no timeline (``paper``)."""
    events: list[dict[str, Any]] = []
    for process, result in enumerate(results, start=1):
        timeline = result.timeline
        if not timeline:
            raise UsageError(
                f"{result.model.name}: the {result.placement.profile} profile has no timeline; "
                "use --profile calibrated"
            )
        events += _process(result, timeline, process)
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, allow_nan=False) + "\n"


def _process(result: Analysis, timeline: Sequence[Slice], process: int) -> Iterator[dict[str, Any]]:
    place = result.placement
    name = f"{result.model.name}: {place.arch}, {place.gpus} x {place.device}, predicted by graphcost"
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    lanes = list(dict.fromkeys(piece.lane for piece in timeline))
    for thread, lane in enumerate(lanes, start=1):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": lane}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": {"sort_index": thread}}
    threads = {lane: thread for thread, lane in enumerate(lanes, start=1)}
    for piece in timeline:
        yield {"ph": "X", "pid": process, "tid": threads[piece.lane], **_event(piece)}


def _event(piece: Slice) -> dict[str, Any]:
    """Ends are rounded, not lengths, so that rounding makes no slices overlap. Microseconds, to the nanosecond."""
    start_ns, end_ns = round(piece.start_s * 1e9), round((piece.start_s + piece.duration_s) * 1e9)
    args: dict[str, Any] = {"part": piece.part or "beside the step"}
    if piece.op_id:
        args["operator"] = piece.op_id
    if piece.bytes:
        args["bytes"] = piece.bytes
    if piece.flops:
        args["flops"] = piece.flops
    if piece.part in ("compute", "memory"):
        args["bound"] = piece.part
    category = piece.phase or piece.lane.partition(":")[0]
    return {"name": piece.name, "cat": category, "ts": start_ns / 1e3, "dur": (end_ns - start_ns) / 1e3, "args": args}
