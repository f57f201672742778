"""The PAI study's abstract against a run on the synthetic population.

``python -m benchmarks.fleet_paper [--seed N] [--count N] [--all]``: generates a population,
runs ``fleet characterize``, ``project`` and ``sweep`` on it with the study's constants, and
prints each figure of the abstract beside this run's, marked fitted or held out. The jobs
are drawn, not measured: no trace of the study's jobs was published. Exits 1 where a figure
is out of its tolerance; ``--all`` adds the other targets, which do not decide that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks._measure import heading, table, verdict
from graphcost.fleet import (
    Study,
    characterize,
    generate,
    hardware_of,
    judge_targets,
    load_population,
    project,
    sweep,
)  # fmt: skip
from graphcost.report.fleet import targets_table

ABSTRACT = ("comm_share", "allreduce_gain", "ethernet_speedup")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--all", action="store_true", help="all targets, fitted and held out apart")
    options = parser.parse_args()
    print(heading("python -m benchmarks.fleet_paper " + " ".join(sys.argv[1:])))
    people = load_population()
    hardware = hardware_of(people.cluster)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "jobs.parquet"))
        print(generate(file, seed=options.seed, count=options.count) + "\n")
        study = Study(characterize(file, hardware), project(file, hardware), sweep(file, hardware))
    targets = judge_targets(people, study)
    shown = [one for one in targets if one.name in ABSTRACT]
    rows = [
        [one.what, f"{one.value:.3g}", f"{one.got:.3g}", f"{one.tolerance:g}", one.use, one.tag]
        for one in shown
        if isinstance(one.value, float) and isinstance(one.got, float)
    ]
    print(table(["the abstract says", "published", "here", "tolerance", "use", "what the figure is worth"], rows))
    if options.all:
        print("\n" + targets_table(targets))
    return verdict([f"{one.what}: {one.got}, published {one.value}" for one in shown if not one.met])


if __name__ == "__main__":
    sys.exit(main())
