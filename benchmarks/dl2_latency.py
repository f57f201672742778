"""Time of one decision of a DL2 policy: state, mask, network, choice, and the tasks handed out.

python -m benchmarks.dl2_latency     # target: under 3 ms a decision (DL2's paper)
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import torch

from graphcost.sched.dl2.encoding import PolicySpec, SlotEncoder
from graphcost.sched.dl2.network import Network
from graphcost.sched.dl2.policy import Policy
from graphcost.sim.setup import SetupOptions, set_up
from graphcost.sim.simulation import Simulation

TARGET_MS = 3.0
CASES = ((48, 60, 20, "shared", 64), (48, 60, 20, "dense", 256), (500, 200, 40, "shared", 64),
         (500, 200, 40, "dense", 256))  # fmt: skip
"""Nodes, jobs, window, network, hidden units."""


def main() -> None:
    """A line a case: mean and 99th percentile over the first slots of a trace."""
    torch.set_num_threads(1)
    print("| nodes | jobs | window | network | decisions | mean | 99th percentile | target |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for nodes, jobs, window, network, hidden in CASES:
        times_ms = sorted(_decisions(nodes, jobs, window, network, hidden))
        mean, late = sum(times_ms) / len(times_ms), times_ms[int(0.99 * len(times_ms))]
        print(
            f"| {nodes} | {jobs} | {window} | {network} {hidden} | {len(times_ms):,} | {mean:.2f} ms | {late:.2f} ms "
            f"| < {TARGET_MS:g} ms |"
        )


def _decisions(nodes: int, jobs: int, window: int, network: str, hidden: int) -> list[float]:
    setup = set_up(SetupOptions(workload="dl2-release", nodes=nodes, count=jobs))
    drawn, _, _ = setup.draw(0, None)
    spec = PolicySpec(tuple(model.name for model in setup.workload.models), window, network=network, hidden=hidden)
    policy = Policy(Network(spec, value=False, seed=0), sampled=True)
    run = Simulation(list(drawn), setup.cluster, setup.speeds, setup.settings(0))
    times_ms: list[float] = []
    draw = np.random.default_rng(0)
    while len(times_ms) < 3000 and not run.done:
        slot, going = SlotEncoder(run.view(), spec), True
        while going:
            start = perf_counter()
            going = slot.take(policy.choose(slot, draw))
            times_ms.append(1e3 * (perf_counter() - start))
        run.run_slot(slot.allocation.decision().grants)
    return times_ms


if __name__ == "__main__":
    main()
