"""Workloads: declared distributions, jobs drawn from them, seeds kept apart, and the load they make."""

from graphcost.sim.workloads.generate import generate
from graphcost.sim.workloads.load import Load, offered_load, stretched
from graphcost.sim.workloads.seeds import SEEDS, Split, seeds_of, split_of
from graphcost.sim.workloads.workload import Workload, load_workload, workload_names

__all__ = [
    "SEEDS", "Load", "Split", "Workload", "generate", "load_workload", "offered_load", "seeds_of", "split_of",
    "stretched", "workload_names",
]  # fmt: skip
