"""Does a step fit on a device: what the placement adds to the plan's memory."""

from __future__ import annotations

from graphcost.hardware import Device
from graphcost.placing import Choice
from graphcost.training import Memory, StepPlan
from graphcost.units import MIB

CONTEXT_BYTES = 500 * MIB
"""assumed: CUDA context and library handles of one process, and NCCL's buffers (0.4 to 1 GB are seen)."""


def memory_on(plan: StepPlan, choice: Choice) -> Memory:
    """The plan's memory with the buffers that the architecture's communication works on."""
    if not plan.recipe.trains:
        return plan.memory
    return plan.memory.with_buckets(choice.arch.buffer_bytes(plan, choice.placement))


def fits(memory: Memory, device: Device) -> bool:
    """Whether the peak and a process's context go into the device's memory."""
    return memory.peak_bytes + CONTEXT_BYTES <= device.mem_bytes
