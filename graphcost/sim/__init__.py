"""A discrete-time cluster simulator, its workloads and speeds; schedulers are arguments."""

from graphcost.sim.bound import per_job_optimum
from graphcost.sim.disturbance import Disturbance
from graphcost.sim.jobs import Job, SimCluster, TrainedModel
from graphcost.sim.result import Metrics, Schedule
from graphcost.sim.scaling import scalings
from graphcost.sim.simulation import Settings, Simulation, simulate

__all__ = [
    "Disturbance", "Job", "Metrics", "Schedule", "Settings", "SimCluster", "Simulation", "TrainedModel",
    "per_job_optimum", "scalings", "simulate",
]  # fmt: skip
