"""What runs over every gradient after the backward pass: one planned operator a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphcost.ir import OpCost, Param, Phase
from graphcost.ops import OpClass
from graphcost.recipe import OptimizerKernels, Recipe
from graphcost.training.gradients import Gradient
from graphcost.training.plan import PlannedOp

TENSORS_PER_KERNEL = 36
"""Tensors that one multi-tensor kernel of four lists takes (torch MultiTensorApply.cuh, depth_to_max_tensors)."""


def updates_of(gradients: Iterable[Gradient], params: Mapping[str, Param], recipe: Recipe) -> tuple[PlannedOp, ...]:
    """One entry a gradient, in the same order. A sparse table moves its touched rows alone.

    Multi-tensor kernels launch once for many parameters: the first of each
    ``TENSORS_PER_KERNEL`` carries the launches.
    """
    passes = [one for _, one in recipe.update_passes()]
    reads, writes = sum(read for read, _ in passes), sum(write for _, write in passes)
    found = []
    for position, gradient in enumerate(gradients):
        numel = params[gradient.param].numel
        touched = numel if gradient.bytes == 0 else -(-numel * gradient.sent_bytes // gradient.bytes)
        first = recipe.kernels is OptimizerKernels.FOR_LOOP or position % TENSORS_PER_KERNEL == 0
        width = recipe.precision.weight_bytes
        found.append(
            PlannedOp(
                id=gradient.param,
                name=gradient.param,
                op_type=recipe.optimizer.name,
                op_class=OpClass.POINTWISE,
                phase=Phase.UPDATE,
                cost=OpCost(0, recipe.optimizer.flops * touched, reads * width * touched, writes * width * touched),
                launches=len(passes) if first else 0,
            )
        )
    return tuple(found)
