"""Collectives of a trace: what each rank gave in, and what of it the PAI study's S_w counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from graphcost.collectives import moved_share
from graphcost.traces.movements import width_of
from graphcost.traces.reading import Event, Trace

_ANNOTATION = re.compile(r"^(?:gloo|nccl|mpi|ucc|xccl|hccl):(.+)$")
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter",
        "alltoall": "all-to-all", "broadcast": "broadcast", "reduce": "reduce", "gather": "gather",
        "scatter": "scatter", "send": "send", "recv": "recv",
    }
)  # fmt: skip
_DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "float": "float", "double": "double", "half": "c10::Half", "bfloat16": "c10::BFloat16", "long": "long int",
        "int": "int", "short": "short int", "char": "signed char", "byte": "unsigned char", "bool": "bool",
    }
)  # fmt: skip
"""Types as ``record_param_comms`` writes them -> the profiler's other names for them."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One call on one rank. ``size_bytes``: its payload as nccl-tests counts it; None: not recorded."""

    kind: str
    size_bytes: float | None
    ranks: int | None

    def traffic_bytes(self, ranks: int) -> float:
        """Bytes sent and received by a rank, 4 (n-1)/n S for an all-reduce (PAI study); of a pair, S."""
        if self.size_bytes is None:
            return 0.0
        if self.kind in ("send", "recv"):
            return self.size_bytes
        return 2 * moved_share(self.kind, self.ranks or ranks) * self.size_bytes


def collectives_of(trace: Trace) -> list[Collective]:
    """From the one source that has sizes: ``record_param_comms``, the backend's annotations, or c10d's calls.

    The first that recorded any is taken: they tell of the same calls.
    """
    every = (*trace.operators, *trace.others)
    for found in (_parameters(every), _annotations(every, trace.ranks), _calls(every)):
        if found:
            return found
    return []


def _kind(name: str) -> str | None:
    """``_reduce_scatter_base``, ``all_gather_into_tensor_coalesced``, ``allreduce_`` -> the collective's name."""
    plain = name.lower().replace("_", "")
    for key, kind in _KINDS.items():
        if key in plain:
            return kind
    return None


def _parameters(events: Iterable[Event]) -> list[Collective]:
    found = []
    for event in events:
        kind = _kind(str(event.args.get("Collective name", ""))) if event.name == "record_param_comms" else None
        if kind is None:
            continue
        into, out = (_number(event.args.get(key)) for key in ("In msg nelems", "Out msg nelems"))
        width = width_of(_DTYPES.get(str(event.args.get("dtype", "")).lower(), ""))
        values = max(into or 0, out or 0)  # the gathered result, or what is scattered
        if values:
            size = None if width is None else float(values * width)
            found.append(Collective(kind, size, _number(event.args.get("Group size")) or None))
    return found


def _annotations(events: Iterable[Event], ranks: int | None) -> list[Collective]:
    found = []
    for event in events:
        match = _ANNOTATION.match(event.name) if event.category != "gpu_user_annotation" else None
        kind = _kind(match[1]) if match else None
        if kind is None:
            continue
        width = next((width for text in event.texts("Input type") if (width := width_of(text))), None)
        shapes = [shape for shape in event.dims() or [] if isinstance(shape, list)]
        values = sum(prod(each) for shape in shapes for each in (shape if shape and _nested(shape) else [shape]))
        if kind == "all-gather":
            values *= ranks or 1
        found.append(Collective(kind, float(values * width) if shapes and width else None, None))
    return found


def _nested(shape: list[object]) -> bool:
    return isinstance(shape[0], list)


def _calls(events: Iterable[Event]) -> list[Collective]:
    """c10d's own operators: lists of tensors without a type, so without bytes."""
    names = (event.name.removeprefix("c10d::") for event in events if event.name.startswith("c10d::"))
    return [Collective(kind, None, None) for name in names if (kind := _kind(name)) is not None]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def summary(found: Iterable[Collective]) -> str:
    """``3 all-reduce, 1 broadcast``."""
    counts = Counter(each.kind for each in found)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
