"""A Chrome trace as values: steps, operators with their nesting, everything else by category."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphcost.errors import DataFileError

_HEAD = re.compile(rb'^\s*\{.{0,200}?"(schemaVersion|traceEvents)"', re.DOTALL)
_STEP = re.compile(r"ProfilerStep#(\d+)$")
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Event:
    """One complete event. ``children``: whether another operator ran inside; times in microseconds."""

    name: str
    category: str
    thread: tuple[Any, Any]
    start_us: float
    end_us: float
    args: Mapping[str, Any]
    parent: Event | None = None
    children: bool = False

    def dims(self) -> list[Any] | None:
        """Shapes of the arguments, lists of shapes for lists of tensors; None where none were recorded."""
        found = self.args.get("Input Dims", self.args.get("Input dims"))
        return found if isinstance(found, list) else None

    def texts(self, key: str) -> list[str]:
        """``Input type`` or ``Concrete Inputs``, one text an argument."""
        found = self.args.get(key)
        return [str(text) for text in found] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class Trace:
    """The recorded steps. ``step_count`` 0: no step was marked, and everything is in.

    ``ranks``: workers of the job, None where the trace names no process group.
    """

    source: str
    step_count: int
    operators: tuple[Event, ...]
    others: tuple[Event, ...]
    ranks: int | None
    rank: int | None = None
    has_device: bool = False
    notes: tuple[str, ...] = field(default=())


def is_trace(source: str) -> bool:
    """Whether a file is a profiler's trace, told by its beginning; False for what cannot be read."""
    path = Path(source)
    if not path.name.endswith((".json", ".json.gz")) or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        if packed:
            with gzip.open(path) as unpacked:
                return _HEAD.match(unpacked.read(4096)) is not None
        with path.open("rb") as file:
            return _HEAD.match(file.read(4096)) is not None
    except (OSError, EOFError, zlib.error):
        return False


def read_trace(source: str) -> Trace:
    """The steps of a trace file; raises ``DataFileError`` for one that cannot be read or holds no operators."""
    data = _loaded(source)
    events = [event for raw in data["traceEvents"] if (event := _event(raw)) is not None]
    steps = {match[1]: e for e in events if e.category != "gpu_user_annotation" and (match := _STEP.match(e.name))}
    notes = []
    if steps:
        first, last = min(e.start_us for e in steps.values()), max(e.end_us for e in steps.values())
        events = [event for event in events if first <= event.start_us < last]
    else:
        notes.append("no ProfilerStep#: all that was recorded is taken for one step (call prof.step() after each)")
    operators = _nested([event for event in events if event.category == "cpu_op"])
    if not operators:
        raise DataFileError(
            f"{source}: holds no operators; record with profile(activities=[ProfilerActivity.CPU, ...])"
        )
    distributed = data.get("distributedInfo")
    known = distributed if isinstance(distributed, dict) else {}
    return Trace(
        source=source,
        step_count=len(steps),
        operators=operators,
        others=tuple(event for event in events if event.category != "cpu_op"),
        ranks=_whole(known.get("world_size")),
        rank=_whole(known.get("rank")),
        has_device=any(event.category in ("kernel", "gpu_memcpy") for event in events),
        notes=tuple(notes),
    )


def _loaded(source: str) -> dict[str, Any]:
    path = Path(source)
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
        data = json.loads(text)
    except OSError as error:
        raise DataFileError(f"{source}: cannot be read ({error.strerror or error})") from error
    except (EOFError, zlib.error) as error:
        raise DataFileError(f"{source}: damaged or cut off as gzip ({error}); export the trace again") from error
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{source}: not a JSON file, or cut off ({error}); export the trace again") from error
    if isinstance(data, list):  # the Chrome format's other form
        data = {"traceEvents": data}
    if not isinstance(data, dict) or not isinstance(data.get("traceEvents"), list):
        raise DataFileError(f"{source}: has no 'traceEvents'; give a trace of torch.profiler's export_chrome_trace")
    return data


def _event(raw: Any) -> Event | None:
    """A complete event with a time; None for the rest (metadata, flows, counters)."""
    if not isinstance(raw, dict) or raw.get("ph") != "X":
        return None
    start, length = raw.get("ts"), raw.get("dur", 0)
    try:
        start_us, end_us = float(start), float(start) + float(length)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    args = raw.get("args")
    return Event(
        name=str(raw.get("name", "")),
        category=str(raw.get("cat", "")).lower(),
        thread=(str(raw.get("pid")), str(raw.get("tid"))),
        start_us=start_us,
        end_us=end_us,
        args=args if isinstance(args, dict) else {},
    )


def _nested(operators: list[Event]) -> tuple[Event, ...]:
    """In order of time, each with the operator that it ran in: calls of one thread hold each other whole."""
    operators.sort(key=lambda event: (event.start_us, -event.end_us))
    open_calls: dict[tuple[Any, Any], list[Event]] = {}
    for event in operators:
        stack = open_calls.setdefault(event.thread, [])
        while stack and stack[-1].end_us <= event.start_us:
            stack.pop()
        if stack:
            event.parent = stack[-1]
            stack[-1].children = True
        stack.append(event)
    return tuple(operators)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
