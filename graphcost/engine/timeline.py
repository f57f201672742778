"""Overlap of gradient exchange with the backward pass, bucket by bucket.

Gradients are grouped in order of readiness; a bucket leaves when its last gradient is
there and the wire is free: ``start_i = max(ready_i, end_(i-1))``. What ends after the
backward pass is exposed, and hidden time still costs its share of interference.
Source: Li et al., PyTorch Distributed (VLDB 2020), section 4; bucket sizes of
torch.nn.parallel.DistributedDataParallel (first 1 MiB, then 25 MiB).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from graphcost.units import MIB

FIRST_BUCKET_BYTES = 1 * MIB
BUCKET_BYTES = 25 * MIB


class Overlap(StrEnum):
    """How communication may hide."""

    NONE = "none"
    IDEAL = "ideal"
    BUCKETED = "bucketed"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients sent together: payload, and when the last of them is ready."""

    size_bytes: float
    ready_s: float


def buckets(
    gradients: Iterable[tuple[float, float]],
    *,
    first_bytes: float = FIRST_BUCKET_BYTES,
    cap_bytes: float = BUCKET_BYTES,
) -> tuple[Bucket, ...]:
    """Group ``(size_bytes, ready_s)`` in order of readiness; a bucket closes once it reaches its cap.

    >>> [b.size_bytes for b in buckets([(1e6, 0.0), (1e6, 0.1), (30e6, 0.2), (5.0, 0.3)])]
    [2000000.0, 30000000.0, 5.0]
    """
    made: list[Bucket] = []
    size, ready, cap = 0.0, 0.0, first_bytes
    for gradient_bytes, ready_s in gradients:
        size, ready = size + gradient_bytes, max(ready, ready_s)
        if size >= cap:
            made.append(Bucket(size, ready))
            size, ready, cap = 0.0, 0.0, cap_bytes
    if size:
        made.append(Bucket(size, ready))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Exposure:
    """Communication of one exchange: all of it, and what the step waits for."""

    total_s: float
    exposed_s: float


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
    for bucket in sent:
        duration = seconds(bucket.size_bytes)
        end = max(bucket.ready_s, end) + duration
        total += duration
    if overlap is Overlap.NONE:
        return Exposure(total, total)
    if overlap is Overlap.IDEAL:
        return Exposure(total, max(0.0, total - backward_s))
    late = min(total, max(0.0, end - backward_s))
    return Exposure(total, late + interference * (total - late))
