"""Speed of the scheduler simulator under DRF, on one core, against a plain implementation in the same run.

``python -m benchmarks.sim_speed [--trace philly_jobs.csv] [--plain-jobs N]``:

1. 500 nodes and 200 jobs of the workload ``dl2-release`` (target: under 2 s).
2. With ``--trace``, 10 000 jobs of Microsoft's Philly trace on the same nodes at a load of 75 %,
   slots of an hour (target: under 60 s). The plain implementation runs the first ``--plain-jobs`` of
   them, and ours once more, for the ratio.

The plain one is written as anybody would write it: dicts, a search over all jobs for each
bundle and over all nodes for each place. Both must finish every job at the same moment, to the
last bit. Exits 1 where a target is missed. Processor time, since machines are shared.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks._measure import heading, table, verdict
from graphcost.sched import SCHEDULERS
from graphcost.sim.jobs import Job
from graphcost.sim.setup import Setup, SetupOptions, set_up
from graphcost.sim.simulation import simulate

T = TypeVar("T")
MOST_S, MOST_PHILLY_S = 2.0, 60.0
PHILLY_JOBS = 10_000


def plain(jobs: Sequence[Job], setup: Setup) -> dict[str, float]:
    """DRF slot by slot: job -> when it finished, in seconds."""
    slot_s, cost_s = setup.slot_s, setup.settings(0).scaling.cost_s
    whole = [(node.cpu_milli, node.gpu_milli) for node in setup.cluster.nodes]
    capacity = tuple(sum(each) for each in zip(*whole, strict=True))
    coming = sorted(jobs, key=lambda job: job.arrival_s)
    remaining = {job.job_id: job.epochs for job in jobs}
    held = {job.job_id: (0, 0) for job in jobs}
    started: set[str] = set()
    finished: dict[str, float] = {}
    slot, active = 0, list[Job]()
    while coming or active:
        if not active:
            slot = max(slot, int(-(-coming[0].arrival_s // slot_s)))
        while coming and coming[0].arrival_s <= slot * slot_s:
            active.append(coming.pop(0))
        for job, workers, ps in fair(active, whole, capacity):
            before, held[job.job_id] = held[job.job_id], (workers, ps)
            if not workers:
                continue
            lost_s = min(slot_s, cost_s(before, (workers, ps), started=job.job_id in started))
            started.add(job.job_id)
            rate = setup.speeds.most_samples_per_s(job.model, workers, ps, setup.cluster)
            epochs_per_s = rate * job.model.efficiency(workers) / job.model.samples_per_epoch
            could = epochs_per_s * (slot_s - lost_s)
            if could >= remaining[job.job_id] * (1 - 1e-12):
                finished[job.job_id] = slot * slot_s + lost_s + remaining[job.job_id] / epochs_per_s
            else:
                remaining[job.job_id] -= could
        active = [job for job in active if job.job_id not in finished]
        slot += 1
    return finished


def fair(active: list[Job], whole: list[tuple[int, int]], capacity: tuple[int, ...]) -> list[tuple[Job, int, int]]:
    """Bundle after bundle to the job with the least dominant share: (job, workers, servers)."""
    free = [list(node) for node in whole]
    places: list[dict[int, int]] = [{} for _ in active]
    bundles = [0] * len(active)
    racing = set(range(len(active)))
    demands = [bundle(job) for job in active]

    def share(index: int) -> float:
        return max(
            bundles[index] * part / there for part, there in zip(demands[index], capacity, strict=True) if there
        )

    def load(node: int) -> float:
        return sum(1 - left / there for left, there in zip(free[node], whole[node], strict=True) if there)

    while racing:
        index = min(racing, key=lambda one: (share(one), one))
        job, demand = active[index], demands[index]
        room = [n for n, left in enumerate(free) if left[0] >= demand[0] and left[1] >= demand[1]]
        node = min([n for n in room if n in places[index]] or room, key=lambda n: (load(n), n), default=None)
        if node is None or bundles[index] >= min(job.max_workers, job.max_ps if job.model.ps else job.max_workers):
            racing.remove(index)
            continue
        free[node] = [left - part for left, part in zip(free[node], demand, strict=True)]
        places[index][node] = 1
        bundles[index] += 1
    return [(job, count, count if job.model.ps else 0) for job, count in zip(active, bundles, strict=True)]


def bundle(job: Job) -> tuple[int, int]:
    """CPUs and GPUs of a worker with its server, in thousandths."""
    worker, ps = job.model.worker, job.model.ps
    return worker.cpu_milli + (ps.cpu_milli if ps else 0), worker.gpu_milli + (ps.gpu_milli if ps else 0)


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and its processor seconds."""
    start = time.process_time()
    return action(), time.process_time() - start


def ours(jobs: Sequence[Job], setup: Setup) -> dict[str, float]:
    """The same of the simulator."""
    run = simulate(list(jobs), setup.cluster, SCHEDULERS.find("drf"), setup.speeds, setup.settings(0))
    return {row.job_id: row.finish_s for row in run.jobs if row.finish_s is not None}


def compare(name: str, jobs: Sequence[Job], setup: Setup) -> tuple[list[str], float]:
    """A row, and our seconds."""
    (found, ours_s), (expected, plain_s) = timed(lambda: ours(jobs, setup)), timed(lambda: plain(jobs, setup))
    if found != expected:
        raise SystemExit(f"{name}: the two simulators differ")
    return [name, f"{ours_s:.2f} s", f"{plain_s:.2f} s", f"{plain_s / ours_s:.1f}x"], ours_s


def main() -> int:
    """Print the table; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="philly_jobs.csv: submit_s, duration_s, num_gpus, vc")
    parser.add_argument("--plain-jobs", type=int, default=1_000)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(heading("python -m benchmarks.sim_speed " + " ".join(sys.argv[1:])) + "on one core\n")
    setup = set_up(SetupOptions(workload="dl2-release"))
    row, seconds = compare("500 nodes, 200 jobs", setup.draw(0, None)[0], setup)
    rows, missed = [[*row, f"< {MOST_S:g} s"]], [] if seconds < MOST_S else [f"200 jobs take {seconds:.1f} s"]
    if options.trace is not None:
        setup = set_up(SetupOptions(trace=options.trace, count=PHILLY_JOBS, load=0.75, slot_s=3600.0))
        jobs = setup.draw(0, None)[0]
        some = sorted(jobs, key=lambda job: job.arrival_s)[: options.plain_jobs]
        row, _ = compare(f"Philly, first {len(some):,} jobs", some, setup)
        finished, seconds = timed(lambda: ours(jobs, setup))
        if len(finished) != len(jobs):
            raise SystemExit(f"{len(jobs) - len(finished)} jobs of Philly did not finish")
        rows += [[*row, ""], [f"Philly, {len(jobs):,} jobs", f"{seconds:.2f} s", "", "", f"< {MOST_PHILLY_S:g} s"]]
        missed += [] if seconds < MOST_PHILLY_S else [f"{len(jobs):,} jobs take {seconds:.0f} s"]
    print(table(["DRF", "graphcost", "plain", "faster", "target"], rows))
    return verdict(missed)


if __name__ == "__main__":
    sys.exit(main())
