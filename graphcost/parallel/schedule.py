"""What a pipeline's schedule costs: idle time, and how many micro-batches a stage holds.

A step is ``m`` micro-batches of the slowest stage, and the time in which the pipeline fills
and drains: one micro-batch through every other stage. With ``p`` equal stages that is the
``(p - 1) / m`` of GPipe and 1F1B, and ``1 / v`` of it where stages hold ``v`` chunks.
Source: Huang et al., GPipe (2019); Narayanan et al. (2021), arXiv 2104.04473, section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcost.parallel.mesh import Mesh, Schedule


def bubble_s(stages_s: Sequence[float], chunks: int = 1) -> float:
    """Idle seconds of the slowest stage; ``stages_s``: forward and backward of one micro-batch, by stage.

    >>> bubble_s([2.0, 2.0, 2.0, 2.0])
    6.0
    """
    return (sum(stages_s) - max(stages_s)) / chunks


def in_flight(mesh: Mesh, stage: int) -> float:
    """Micro-batches whose activations stage ``stage`` (from 0) keeps at once, in units of the whole stage.

    GPipe keeps all; 1F1B one for every stage from this to the last; interleaved, the warm-up of
    Megatron-LM's schedule and one more, in chunks.
    """
    micro_batches = mesh.micro_batches
    if mesh.schedule is Schedule.GPIPE:
        return micro_batches
    ahead = mesh.pp - 1 - stage
    if mesh.schedule is Schedule.ONE_F_ONE_B or mesh.pp == 1:
        return min(micro_batches, ahead + 1)
    warm_up = 2 * ahead + (mesh.chunks - 1) * mesh.pp
    return min(micro_batches * mesh.chunks, warm_up + 1) / mesh.chunks
