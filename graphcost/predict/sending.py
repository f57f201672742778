"""What an architecture's exchanges cost a step: hidden behind a pass where they can be, one at a time on a queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graphcost.arch import Exchange
from graphcost.engine.timeline import Bucket, Bucketing, Exposure, Overlap, buckets, exposure
from graphcost.ir import Phase
from graphcost.predict.step_time import Message, TimedOp


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of one micro-batch: when each operator begins and ends, in seconds from its beginning."""

    begins_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    wall_s: float


def pass_of(ops: Sequence[TimedOp], wall_s: float) -> Pass:
    """Operators one after another over ``wall_s``; waiting for the host is spread evenly."""
    busy_s = sum(timed.time.time_s for timed in ops)
    stretch = wall_s / busy_s if busy_s else 1.0
    begins, ends, clock = [], [], 0.0
    for timed in ops:
        begins.append(clock)
        clock += timed.time.time_s * stretch
        ends.append(clock)
    return Pass(tuple(begins), tuple(ends), wall_s)


def messages_of(
    parts: Iterable[Exchange], passes: Mapping[Phase, Pass], overlap: Overlap, bucketing: Bucketing
) -> tuple[Message, ...]:
    """Every exchange with what of it a step waits for."""
    found = []
    for part in parts:
        phase = part.needed_in or Phase.BACKWARD
        sent = _sent(part, passes[phase], overlap, bucketing)
        found.append((part, phase, sent))
    return tuple(_message(part, sent) for part, _, sent in _taking_turns(found, passes, overlap))


def _sent(part: Exchange, over: Pass, overlap: Overlap, bucketing: Bucketing) -> Exposure:
    """One trip of an exchange. What is needed before an operator is what is ready after it, in a mirror of time."""
    how = part.bucketing or bucketing
    if not part.hides:
        return exposure((Bucket(part.size_bytes, over.wall_s),), part.seconds, over.wall_s, Overlap.NONE, 0.0)
    if part.needed_in is None:
        ready = ((size, over.ends_s[position]) for size, position in part.payload)
        return exposure(buckets(ready, how), part.seconds, over.wall_s, overlap, part.interference)
    mirrored = ((size, over.wall_s - over.begins_s[position]) for size, position in reversed(part.payload))
    found = exposure(buckets(mirrored, how), part.seconds, over.wall_s, overlap, part.interference)
    last_s = max((one.end_s for one in found.sends), default=0.0)
    sends = (replace(one, start_s=last_s - one.end_s, end_s=last_s - one.start_s) for one in reversed(found.sends))
    return replace(found, sends=tuple(sends))


_Sent = tuple[Exchange, Phase, Exposure]


def _taking_turns(found: Sequence[_Sent], passes: Mapping[Phase, Pass], overlap: Overlap) -> list[_Sent]:
    """Exchanges of one queue hide no more behind a pass than it lasts; the last of them waits for the rest."""
    made = []
    left = {(part.queue, phase): passes[phase].wall_s for part, phase, _ in found}
    for part, phase, sent in found:
        if part.queue and part.hides and overlap is not Overlap.NONE:
            room_s = left[part.queue, phase]
            hidden_s = min(sent.total_s - sent.exposed_s, room_s)
            left[part.queue, phase] = room_s - hidden_s
            sent = replace(sent, exposed_s=sent.total_s - hidden_s)
        made.append((part, phase, sent))
    return made


def _message(part: Exchange, sent: Exposure) -> Message:
    """All trips of an exchange; its sends are those of the last."""
    return Message(
        part.what, part.link, part.kind, part.wire_bytes, part.trips * sent.total_s, part.trips * sent.exposed_s,
        sends=sent.sends, before=not part.hides or part.needed_in is Phase.FORWARD, formula=part.formula,
        source=part.source, spread=part.spread,
    )  # fmt: skip
