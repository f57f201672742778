"""From a trace to a row of a job table; what the trace does not hold is None, and a note says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from graphcost.features import JobFeatures
from graphcost.traces.communication import collectives_of, summary
from graphcost.traces.contractions import CONTRACTIONS
from graphcost.traces.movements import FREE, MOVEMENTS, Tensor, arguments, foreach_bytes
from graphcost.traces.reading import Event, Trace, read_trace

_SILENT = ("c10d::", "autograd::", "torch::")
SHOWN = 6
"""Operators named in a note."""


@dataclass(frozen=True, slots=True)
class TraceFeatures:
    """Features of one step on the traced rank, how many steps they are the mean of, and what to know of them."""

    features: JobFeatures
    steps: int
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Work:
    """Sums over all steps, and what could not be summed."""

    flops: int = 0
    moved_bytes: int = 0
    without_shapes: int = 0
    uncounted: Counter[str] = field(default_factory=Counter)


def trace_features(source: str, *, arch: str | None = None, gpus: int | None = None) -> TraceFeatures:
    """Features of the trace in the file ``source``; ``arch`` and ``gpus`` where the caller knows them.

    Without them, workers are the trace's process group, one where it names none, and several
    train by all-reduce. Raises ``DataFileError`` for a file that is no trace.
    """
    trace = read_trace(source)
    steps = max(1, trace.step_count)
    work = _work_of(trace)
    ranks = gpus or trace.ranks or 1
    notes = [*trace.notes, *_ranks_notes(trace, gpus)]
    traffic_bytes = _traffic(trace, ranks, steps, notes)
    flops, mem_bytes = _counted(work, steps, notes)
    features = JobFeatures(
        arch=arch or ("allreduce" if ranks > 1 else "single"),
        cnodes=ranks,
        batch=None,
        input_bytes=_input_bytes(trace, steps, notes),
        flops=flops,
        mem_bytes=mem_bytes,
        dense_weight_bytes=traffic_bytes,
        sparse_weight_bytes=None if traffic_bytes is None else 0.0,
    )
    return TraceFeatures(features, steps, tuple(notes))


def _work_of(trace: Trace) -> _Work:
    """The outermost operator that has a rule counts; what runs inside it is its own doing."""
    work = _Work()
    done: set[int] = set()
    for event in trace.operators:
        if event.parent is not None and id(event.parent) in done:
            done.add(id(event))
            continue
        if _count(event, work):
            done.add(id(event))
    return work


def _count(event: Event, work: _Work) -> bool:
    """Adds the event's work; whether it had a rule."""
    name = event.name
    listed = name.startswith("aten::_foreach_")
    if name not in CONTRACTIONS and name not in MOVEMENTS and not listed:
        _note_uncounted(event, work)
        return False
    dims = event.dims()
    if dims is None:
        work.without_shapes += 1
        return True
    texts = event.texts("Concrete Inputs")
    try:
        if name in CONTRACTIONS:
            work.flops += CONTRACTIONS[name](dims, texts)
        else:
            given = arguments(event)
            if listed and not any(isinstance(each, list) for each in given):
                return False  # the list was not recorded; what runs inside may have been
            work.moved_bytes += MOVEMENTS.get(name, foreach_bytes)(given, texts)
    except (IndexError, ValueError, TypeError, SyntaxError):
        # Another version's signature: said by name, never guessed.
        work.uncounted[name] += 1
    return True


def _note_uncounted(event: Event, work: _Work) -> None:
    """An operator without a rule that did something: it ran no other, and had a tensor of more than one value."""
    if event.children or event.name in FREE or "::" not in event.name or event.name.startswith(_SILENT):
        return
    tensors: list[Tensor] = []
    for each in arguments(event):
        tensors += each if isinstance(each, list) else [each] if each is not None else []
    if any(tensor.numel > 1 for tensor in tensors):
        work.uncounted[event.name] += 1


def _counted(work: _Work, steps: int, notes: list[str]) -> tuple[float | None, float | None]:
    """FLOPs and bytes of a step; None without shapes."""
    if work.without_shapes:
        notes.append(
            f"{work.without_shapes} operators have no shapes: FLOPs and memory traffic are not known "
            "(record with record_shapes=True)"
        )
        return None, None
    if work.uncounted:
        named = ", ".join(f"{name} ({count})" for name, count in work.uncounted.most_common(SHOWN))
        more = f" and {len(work.uncounted) - SHOWN} more" if len(work.uncounted) > SHOWN else ""
        notes.append(f"memory traffic is a lower bound: no rule for {named}{more}")
    return work.flops / steps, work.moved_bytes / steps


def _input_bytes(trace: Trace, steps: int, notes: list[str]) -> float | None:
    """Copies from the host to the device."""
    if not trace.has_device:
        notes.append("input copies are not known: no device was recorded (ProfilerActivity.CUDA)")
        return None
    copies = [event for event in trace.others if event.category == "gpu_memcpy" and "HtoD" in event.name]
    sizes = [event.args.get("bytes", event.args.get("Bytes")) for event in copies]
    known = [size for size in sizes if isinstance(size, (int, float))]
    if len(known) < len(copies):
        notes.append(f"input copies are not known: {len(copies) - len(known)} of {len(copies)} have no size")
        return None
    return sum(known) / steps


def _traffic(trace: Trace, ranks: int, steps: int, notes: list[str]) -> float | None:
    """S_w of all collectives: the trace does not tell gradients of tables from others."""
    if ranks == 1:
        return 0.0
    found = collectives_of(trace)
    if not found:
        notes.append("weight traffic is not known: no collective was recorded (gloo:, nccl:, record_param_comms)")
        return None
    unknown = [each for each in found if each.size_bytes is None]
    if unknown:
        notes.append(f"weight traffic is not known: sizes of {summary(unknown)} were not recorded")
        return None
    notes.append(f"weight traffic is that of {summary(found)} in {steps} steps, all of it taken for dense weights")
    return sum(each.traffic_bytes(ranks) for each in found) / steps


def _ranks_notes(trace: Trace, gpus: int | None) -> list[str]:
    if gpus is not None and trace.ranks is not None and gpus != trace.ranks:
        return [f"{gpus} GPUs were given, the trace was recorded with {trace.ranks} ranks; {gpus} count"]
    if gpus is None and trace.ranks is None:
        return ["no process group was recorded: taken for one worker"]
    return []
