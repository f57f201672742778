"""Overlap of gradient exchange with the backward pass, bucket by bucket.

Gradients are grouped in order of readiness; a bucket leaves when its last gradient is
there and the wire is free: ``start_i = max(ready_i, end_(i-1))``. What ends after the
backward pass is exposed, and hidden time still costs its share of interference.
Source: Li et al., PyTorch Distributed (VLDB 2020), section 4; bucket sizes of
torch.nn.parallel.DistributedDataParallel (first 1 MiB, then 25 MiB).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from types import MappingProxyType

from graphcost.units import MIB


class Overlap(StrEnum):
    """How communication may hide."""

    NONE = "none"
    IDEAL = "ideal"
    BUCKETED = "bucketed"


@dataclass(frozen=True, slots=True)
class Bucketing:
    """How gradients are grouped. ``cycle_s``: a coordinator looks for full buckets this often.

    >>> BUCKETINGS["ddp"].cap_bytes == 25 * 2**20
    True
    """

    name: str
    first_bytes: float
    cap_bytes: float
    cycle_s: float = 0.0


BUCKETINGS: Mapping[str, Bucketing] = MappingProxyType(
    {
        # torch.nn.parallel.DistributedDataParallel (torch 2.13): kDefaultFirstBucketBytes, bucket_cap_mb.
        "ddp": Bucketing("ddp", 1 * MIB, 25 * MIB),
        # Horovod 0.28: HOROVOD_FUSION_THRESHOLD 128 MiB, HOROVOD_CYCLE_TIME 1 ms.
        "horovod": Bucketing("horovod", 128 * MIB, 128 * MIB, 1e-3),
    }
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients sent together: payload, when the last of them is ready, and which they are."""

    size_bytes: float
    ready_s: float
    first: int = 0
    last: int = 0


def buckets(gradients: Iterable[tuple[float, float]], how: Bucketing = BUCKETINGS["ddp"]) -> tuple[Bucket, ...]:
    """Group ``(size_bytes, ready_s)`` in order of readiness; a bucket closes once it reaches its cap.

    >>> [b.size_bytes for b in buckets([(1e6, 0.0), (1e6, 0.1), (30e6, 0.2), (5.0, 0.3)])]
    [2000000.0, 30000000.0, 5.0]
    """
    made: list[Bucket] = []
    size, ready, cap, first, position = 0.0, 0.0, how.first_bytes, 0, -1
    for position, (gradient_bytes, ready_s) in enumerate(gradients):
        size, ready = size + gradient_bytes, max(ready, ready_s)
        if size >= cap:
            made.append(Bucket(size, _on_cycle(ready, how.cycle_s), first, position))
            size, ready, cap, first = 0.0, 0.0, how.cap_bytes, position + 1
    if size:
        made.append(Bucket(size, _on_cycle(ready, how.cycle_s), first, position))
    return tuple(made)


def _on_cycle(ready_s: float, cycle_s: float) -> float:
    return ceil(ready_s / cycle_s) * cycle_s if cycle_s else ready_s


@dataclass(frozen=True, slots=True)
class Send:
    """One bucket on the wire, in seconds from the beginning of the backward pass that it follows."""

    start_s: float
    end_s: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Exposure:
    """Communication of one exchange: all of it, what the step waits for, and every send."""

    total_s: float
    exposed_s: float
    sends: tuple[Send, ...] = ()


def exposure(
    sent: Iterable[Bucket],
    seconds: Callable[[float], float],
    backward_s: float,
    overlap: Overlap,
    interference: float,
) -> Exposure:
    """Time on the wire and what of it is exposed beyond ``backward_s``.

    ``ideal`` hides all that fits into the backward pass, ``none`` hides nothing.
    """
    end = total = 0.0
    sends = []
    for bucket in sent:
        duration = seconds(bucket.size_bytes)
        ready = backward_s if overlap is Overlap.NONE else 0.0 if overlap is Overlap.IDEAL else bucket.ready_s
        start = max(ready, end)
        end = start + duration
        sends.append(Send(start, end, bucket.size_bytes))
        total += duration
    late = min(total, max(0.0, end - backward_s))
    if overlap is Overlap.NONE:
        return Exposure(total, total, tuple(sends))
    if overlap is Overlap.IDEAL:
        return Exposure(total, max(0.0, total - backward_s), tuple(sends))
    return Exposure(total, late + interference * (total - late), tuple(sends))
