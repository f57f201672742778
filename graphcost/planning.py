"""The plan of a step under a choice of options: of one replica, divided where the architecture divides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcost.arch.product import Product
from graphcost.parallel.planning import divide, share_of
from graphcost.placing import Choice
from graphcost.training import StepPlan, plan_step

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


def plan_for(graph: OpGraph, choice: Choice, plan: StepPlan | None = None) -> StepPlan:
    """``plan`` (default: made here) of ``graph`` under the recipe of ``choice``, as its architecture runs it.

    Raises ``PlacementError`` where the graph cannot be divided so.
    """
    plan = plan or plan_step(graph, choice.recipe)
    if not isinstance(choice.arch, Product):
        return plan
    mesh, place = choice.arch.mesh, choice.placement
    return divide(plan, share_of(graph, plan, mesh, place.cluster), mesh, place.cluster, place.gpus_per_server)
