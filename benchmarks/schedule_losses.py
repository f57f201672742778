"""Where schedulers lose time: seconds over the bound in mean completion, by model, and how often jobs are cut.

    python -m benchmarks.schedule_losses [LOAD...]     # zoo workload, 20 validation traces; 60% and 90% by default

The bound: every job alone on the tasks that suit it best. ``cut``: stretches of jobs' runs, from one change of tasks
to the next, on several servers; ``scaling``: seconds a job stood still when its tasks changed. Markdown on stdout.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from graphcost.sched import SCHEDULERS
from graphcost.sim import per_job_optimum, simulate
from graphcost.sim.setup import Setup, SetupOptions, set_up
from graphcost.sim.workloads import Split, seeds_of

SHOWN = ("optimus", "optimus-exact", "optimus-compact", "compact")
TRACES = 20


def losses(setup: Setup, name: str) -> tuple[Counter[str], float, float]:
    """Seconds over the bound by model, a job of all; the share of stretches cut; seconds of scaling a job."""
    lost: Counter[str] = Counter()
    jobs = stretches = cut = 0
    scaling_s = 0.0
    for seed in seeds_of(Split.VALIDATION, TRACES):
        settings = setup.settings(seed)
        drawn = list(setup.draw(seed, Split.VALIDATION)[0])
        found = simulate(drawn, setup.cluster, SCHEDULERS.find(name), setup.speeds, settings, seed=seed)
        least = {one.job_id: one.jct_s for one in per_job_optimum(drawn, setup.cluster, setup.speeds, settings)[0]}
        for one in found.jobs:
            best_s = least[one.job_id]
            if one.jct_s is None or best_s is None:
                raise SystemExit(f"{name}, seed {seed}: {one.job_id} does not finish")
            lost[one.model] += one.jct_s - best_s
            scaling_s += one.scaling_s
        jobs += len(drawn)
        stretches += len(found.runs)
        cut += sum(len(run.nodes) > 1 for run in found.runs)
    return Counter({model: seconds / jobs for model, seconds in lost.items()}), cut / stretches, scaling_s / jobs


def main(loads: Sequence[str]) -> None:
    """``loads`` in per cent."""
    setups = {}
    for load in loads or ("60%", "90%"):
        setups[load] = set_up(SetupOptions(workload="zoo", load=float(load.rstrip("%")) / 100))
    models = sorted(model.name for model in next(iter(setups.values())).workload.models)
    heads = " | ".join(model.removeprefix("zoo:") for model in models)
    print(f"| load | scheduler | all | {heads} | cut | scaling |")
    print("| --- " * (5 + len(models)) + "|")
    for load, setup in setups.items():
        for name in SHOWN:
            lost, cut, scaling_s = losses(setup, name)
            each = " | ".join(f"{lost[model]:,.0f}" for model in models)
            print(f"| {load} | {name} | {lost.total():,.0f} | {each} | {cut:.1%} | {scaling_s:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
