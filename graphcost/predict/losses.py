"""What a step on several GPUs loses that no link explains, as messages without bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from graphcost.arch import Placement
from graphcost.network.overhead import multi_gpu_overhead_s, overhead_constants, straggler_s
from graphcost.predict.step_time import Message


def beyond_the_wire(
    sent: tuple[Message, ...], single_gpu_s: float, placement: Placement, straggler_spread: float
) -> tuple[Message, ...]:
    """The losses of a step that sends anything: never hidden, nothing for one GPU.

    ``single_gpu_s``: the step without communication; ``straggler_spread``: of the step over GPUs, a share.
    Asynchronous workers wait for the GPUs of their own server alone.
    """
    if placement.gpus == 1 or not sent:
        return ()
    made = []
    # A server calibrated while all of its workers were busy has these losses in its curves.
    together = replace(placement, gpus=placement.gpus_per_server, servers=1) if placement.asynchronous else placement
    if not placement.cluster.server.curves or together.servers > 1:
        made.append(_overhead(single_gpu_s, together))
    if straggler_spread:
        late_s = straggler_s(single_gpu_s, together.gpus, straggler_spread)
        made.append(_loss("slowest GPU", late_s, "s T1 sqrt(2 ln n)", "expected maximum; the spread s as given", 0.0))
    return tuple(made)


def _overhead(single_gpu_s: float, placement: Placement) -> Message:
    table = overhead_constants()
    inside, across = table["per_doubling_in_server"], table["per_doubling_of_servers"]
    formula = f"T1 ({inside:g} log2 GPUs of a server + {across:g} log2 servers)"
    overhead_s = multi_gpu_overhead_s(single_gpu_s, placement.gpus_per_server, placement.servers)
    return _loss("multi-GPU overhead", overhead_s, formula, table["source"], table["spread"])


def _loss(what: str, seconds: float, formula: str, source: str, spread: float) -> Message:
    return Message(what, "none", "overhead", 0.0, seconds, seconds, formula=formula, source=source, spread=spread)


def comm_spread(messages: Iterable[Message]) -> float:
    """Spread of all exposed time together: the mean over messages, each by what it exposes."""
    known = tuple(messages)
    exposed_s = sum(message.exposed_s for message in known)
    return sum(message.spread * message.exposed_s for message in known) / exposed_s if exposed_s else 0.0
