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
    widths = (
        *((one, recipe.weight_bytes) for _, one in recipe.gradient_passes()),
        *((one, recipe.state_bytes) for _, one in recipe.state_passes()),
    )
    read_bytes = sum(width * read for (read, _), width in widths)  # a value
    write_bytes = sum(width * write for (_, write), width in widths)
    found = []
    for position, gradient in enumerate(gradients):
        numel = params[gradient.param].numel
        touched = numel if gradient.bytes == 0 else -(-numel * gradient.sent_bytes // gradient.bytes)
        first = recipe.kernels is OptimizerKernels.FOR_LOOP or position % TENSORS_PER_KERNEL == 0
        found.append(
            PlannedOp(
                id=gradient.param,
                name=gradient.param,
                op_type=recipe.optimizer.name,
                op_class=OpClass.POINTWISE,
                phase=Phase.UPDATE,
                cost=OpCost(0, recipe.optimizer.flops * touched, read_bytes * touched, write_bytes * touched),
                launches=len(widths) if first else 0,
            )
        )
    return tuple(found)
