"""Does a step fit on a device, and how large a batch does: what the placement adds to the plan's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.hardware import Device
from graphcost.ir import Model
from graphcost.placing import AnalysisOptions, Choice
from graphcost.planning import plan_for
from graphcost.sources import load_model
from graphcost.training import Memory, StepPlan
from graphcost.units import MIB

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

CONTEXT_BYTES = 500 * MIB
"""assumed: CUDA context and library handles of one process, and NCCL's buffers (0.4 to 1 GB are seen)."""

LARGEST_BATCH = 1 << 24
"""Where the search for a batch that no longer fits gives up."""


def memory_on(plan: StepPlan, choice: Choice) -> Memory:
    """One GPU's part of the plan's memory, with the buffers that the architecture's communication works on."""
    held = choice.arch.local_plan(plan, choice.placement).memory
    if not plan.recipe.trains:
        return held
    return held.with_buckets(choice.arch.buffer_bytes(plan, choice.placement))


def fits(memory: Memory, device: Device) -> bool:
    """Whether the peak and a process's context go into the device's memory."""
    return memory.peak_bytes + CONTEXT_BYTES <= device.mem_bytes


def at_batch(
    source: Any, load: LoadOptions, batch: int, example_inputs: Any = None, *, base: Model | None = None
) -> OpGraph:
    """The graph of ``source`` at ``batch`` samples per GPU; ``base`` as for ``load_model``.

    Raises ``UsageError`` for a model without a batch dimension, and what loading raises.
    """
    model = load_model(source, replace(load, batch=batch), example_inputs, base=base)
    if model.batch != batch:
        raise UsageError(f"{model.name} has no batch dimension that can be set")
    return build_graph(model)


def largest_batch(source: Any, options: AnalysisOptions, choice: Choice, example_inputs: Any = None) -> int:
    """The most samples per GPU whose step fits; 0 where not even one does.

    The model is loaded anew for every batch tried. Raises ``UsageError`` for a model
    without a batch dimension, or whose memory does not grow with it.
    """
    room_bytes = int(choice.placement.cluster.device.mem_bytes) - CONTEXT_BYTES

    def excess_bytes(batch: int) -> int:
        graph = at_batch(source, options.load, batch, example_inputs)
        return memory_on(plan_for(graph, choice), choice).peak_bytes - room_bytes

    largest = last_not_above_zero(excess_bytes, LARGEST_BATCH)
    if largest == LARGEST_BATCH:
        raise UsageError(f"--max-batch: a batch of {LARGEST_BATCH} still fits: memory hardly depends on the batch")
    return largest


def last_not_above_zero(excess: Callable[[int], int], limit: int) -> int:
    """The largest ``n`` in 1..``limit`` with ``excess(n) <= 0``, 0 where there is none; ``excess`` never falls.

    A peak is a maximum of straight lines, so a line through two known points mostly hits
    the answer and its neighbour proves it; every third guess halves what is left, which
    bounds the number of calls where it does not.
    """
    at: dict[int, int] = {}

    def fits_with(n: int) -> bool:
        at[n] = excess(n)
        return at[n] <= 0

    if not fits_with(1):
        return 0
    low, high = 1, 2
    while fits_with(high):
        if high == limit:
            return limit
        low, high = high, min(limit, max(2 * high, (_crossing(at, low, high) or 64 * high) + 1))
    return narrow(excess, at, low, high)


def narrow(excess: Callable[[int], int], at: dict[int, int], low: int, high: int) -> int:
    """The last ``n`` with ``excess(n) <= 0`` between ``low``, where that holds, and ``high``, where it does not.

    ``at`` holds what is known of ``excess``, both ends included; every call is added to it.
    """
    turn, neighbour = 0, low + 1
    while high - low > 1:
        guess = (_crossing(at, low, high) or low, neighbour, (low + high) // 2)[turn % 3]
        guess = max(low + 1, min(guess, high - 1))
        at[guess] = excess(guess)
        low, high, neighbour = (guess, high, guess + 1) if at[guess] <= 0 else (low, guess, guess - 1)
        turn += 1
    return low


def _crossing(at: dict[int, int], a: int, b: int) -> int | None:
    """Where the line through two known points is zero; None where it does not rise."""
    rise = at[b] - at[a]
    return a + -at[a] * (b - a) // rise if rise > 0 else None
