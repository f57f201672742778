"""From an op graph to one training step, before any hardware.

>>> from graphcost.graph import build_graph
>>> from graphcost.models_zoo import build
>>> plan = plan_step(build_graph(build("mlp", batch=1)))
>>> plan.gradient_bytes == 4 * 669_706
True
"""

from graphcost.training.build import memory_moments, plan_step, step_memory
from graphcost.training.gradients import Gradient
from graphcost.training.memory import Memory
from graphcost.training.moments import Moment
from graphcost.training.plan import PlannedOp, StepBytes, StepPlan, total_cost

__all__ = [
    "Gradient",
    "Memory",
    "Moment",
    "PlannedOp",
    "StepBytes",
    "StepPlan",
    "memory_moments",
    "plan_step",
    "step_memory",
    "total_cost",
]
