"""Cluster schedulers: one pure file each, all registered in ``SCHEDULERS``. None of them sees a graph."""

from graphcost.sched import compact, drf, fifo, optimus, pollux, srtf, tetris  # noqa: F401  # each registers itself
from graphcost.sched.allocation import Allocation
from graphcost.sched.policy import SCHEDULERS, Knowledge, Scheduler, register
from graphcost.sched.view import (
    Decision,
    Grant,
    Increment,
    JobView,
    Observation,
    Resources,
    SlotView,
    Speed,
    Tasks,
)

__all__ = [
    "SCHEDULERS", "Allocation", "Decision", "Grant", "Increment", "JobView", "Knowledge", "Observation",
    "Resources", "Scheduler", "SlotView", "Speed", "Tasks", "register",
]  # fmt: skip
