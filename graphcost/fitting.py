"""Does a step fit on a device, and how large a batch does: what the placement adds to the plan's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graphcost.errors import UsageError
from graphcost.graph import build_graph
from graphcost.hardware import Device
from graphcost.placing import AnalysisOptions, Choice
from graphcost.sources import load_model
from graphcost.training import Memory, StepPlan, plan_step
from graphcost.units import MIB

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


def largest_batch(source: Any, options: AnalysisOptions, choice: Choice, example_inputs: Any = None) -> int:
    """The most samples per GPU whose step fits; 0 where not even one does.

    The model is loaded anew for every batch tried. Raises ``UsageError`` for a model
    without a batch dimension, or whose memory does not grow with it.
    """
    room_bytes = int(choice.placement.cluster.device.mem_bytes) - CONTEXT_BYTES

    def excess_bytes(batch: int) -> int:
        model = load_model(source, replace(options.load, batch=batch), example_inputs)
        if model.batch != batch:
            raise UsageError(f"--max-batch: {model.name} has no batch dimension that can be set")
        return memory_on(plan_step(build_graph(model), choice.recipe), choice).peak_bytes - room_bytes

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

    def crossing(a: int, b: int) -> int:
        rise = at[b] - at[a]
        return a + -at[a] * (b - a) // rise if rise > 0 else 64 * b

    if not fits_with(1):
        return 0
    low, high = 1, 2
    while fits_with(high):
        if high == limit:
            return limit
        low, high = high, min(limit, max(2 * high, crossing(low, high) + 1))
    turn, neighbour = 0, low + 1
    while high - low > 1:
        guess = (crossing(low, high), neighbour, (low + high) // 2)[turn % 3]
        guess = max(low + 1, min(guess, high - 1))
        low, high, neighbour = (guess, high, guess + 1) if fits_with(guess) else (low, guess, guess - 1)
        turn += 1
    return low
