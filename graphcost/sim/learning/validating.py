"""How good a policy is on traces: mean completion time over all of them, against its teacher on the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphcost.sched import Scheduler
from graphcost.sim.jobs import Job, fits_somewhere
from graphcost.sim.setup import Setup
from graphcost.sim.simulation import simulate


def mean_jct_s(setup: Setup, scheduler: Scheduler, traces: Sequence[tuple[int, Sequence[Job]]]) -> float:
    """Mean over traces of the mean completion time; infinite where one that some node holds never finishes."""
    means = []
    for seed, drawn in traces:
        jobs = [job for job in drawn if fits_somewhere(job, setup.cluster)]
        metrics = simulate(jobs, setup.cluster, scheduler, setup.speeds, setup.settings(seed), seed=seed).metrics
        means.append(np.inf if metrics.unfinished or metrics.mean_jct_s is None else metrics.mean_jct_s)
    return float(np.mean(means))
