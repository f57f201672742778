"""The free numbers of the synthetic population, fitted to those targets that the fit may see.

``python -m benchmarks.fit population [--jobs N] [--seed N] [--write]``: least squares over the
targets of ``graphcost/fleet/population.toml`` with ``use = "fitted"``, each in units of its
tolerance, on one fixed set of draws. Held-out targets are not evaluated during the fit; they
are printed after it, from the commands that a user would run. ``--write`` replaces the
``[fitted]`` table of that file. Needs scipy and polars.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks._measure import heading
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
from graphcost.fleet.characterize import KindTally, count_block, summary
from graphcost.fleet.population import DRAW_ROWS, as_jobs, draw, shipped_text
from graphcost.fleet.result import Target
from graphcost.fleet.targets import METRICS
from graphcost.report.fleet import targets_table

FILE = Path(__file__).parents[2] / "graphcost" / "fleet" / "population.toml"
FLOOR = {"ps_comm_over_80": 0.42, "cnodes_over_128": 0.20, "memory_over_compute": 1.2}
"""Where a target is only a bound, the fit aims a little beyond it; it costs nothing to exceed the others."""


START = {
    "allreduce_weights_mean": -0.5, "local_compute_mean": -0.6, "local_input_mean": -2.2, "local_weights_mean": 0.3,
    "ps_cnodes_median": 8.4, "ps_cnodes_sigma": 1.4, "ps_compute_mean": -0.6, "ps_input_mean": -2.2,
    "ps_weights_mean": 1.3, "ps_weights_sigma": 1.5, "single_compute_mean": -0.6, "single_input_mean": -2.2,
    "single_input_sigma": 1.3, "single_job_share": 0.55, "table_bytes_median": 3e9,
}  # fmt: skip
"""Where the fit begins; the same whatever was fitted before, so that nothing of an older fit stays in."""


def residuals(fitted: Mapping[str, float], seed: int, blocks: int) -> np.ndarray:
    """(got - wanted) / tolerance of every fitted target; 0 for a bound that is kept."""
    people = load_population(fitted)
    hardware = hardware_of(people.cluster)
    tallies: dict[int, KindTally] = {}
    for block in range(blocks):
        for _ in count_block(as_jobs(people, *draw(people, seed, block)), hardware, None, tallies):
            pass
    study = Study(summary("drawn", {}, hardware, None, tallies))
    found = []
    for target in people.targets:
        if target["use"] != "fitted":
            continue
        got = METRICS[target["name"]](study)
        assert isinstance(got, float)
        off = got - FLOOR.get(target["name"], target["value"])
        if target["relation"] != "about":
            off = min(0.0, off)
        found.append(off / target.get("tolerance", 0.1))
    return np.array(found)


def fit(seed: int, blocks: int) -> dict[str, float]:
    """The fitted numbers; logarithms of medians and sigmas keep them positive."""
    start = START
    names = list(start)
    positive = [name.endswith(("_median", "_sigma", "_share")) for name in names]

    def values(x: np.ndarray) -> dict[str, float]:
        return {n: float(np.exp(v) if p else v) for n, v, p in zip(names, x, positive, strict=True)}

    first = np.array([np.log(start[n]) if p else start[n] for n, p in zip(names, positive, strict=True)])
    # A weak pull to the start settles what no target sees.
    done = least_squares(
        lambda x: np.concatenate([residuals(values(x), seed, blocks), 0.1 * (x - first)]), first,
        diff_step=0.02, x_scale=np.maximum(0.3, np.abs(first)), max_nfev=25,
    )  # fmt: skip
    return {name: float(f"{value:.4g}") for name, value in values(done.x).items()}


def written(text: str, fitted: Mapping[str, float]) -> str:
    """The file with its ``[fitted]`` table replaced."""
    lines = "".join(f"{name} = {value!r}\n" for name, value in sorted(fitted.items()))
    return re.sub(r"(\[fitted\][^\n]*\n)(?:\w+ = .*\n)+", lambda match: match[1] + lines, text, count=1)


def judged(seed: int, count: int) -> tuple[Target, ...]:
    """All targets, from the commands on a generated table."""
    people = load_population()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "jobs.parquet"))
        generate(file, seed=seed, count=count)
        hardware = hardware_of(people.cluster)
        study = Study(characterize(file, hardware), project(file, hardware), sweep(file, hardware))
    return judge_targets(people, study)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit population", description=__doc__)
    parser.add_argument("--jobs", type=int, default=4 * DRAW_ROWS, help="jobs drawn for the fit")
    parser.add_argument("--seed", type=int, default=2019, help="of the fit's draws; judged on another seed")
    parser.add_argument("--write", action="store_true", help="replace [fitted] in population.toml")
    options = parser.parse_args(arguments)
    print(heading("python -m benchmarks.fit population " + " ".join(arguments)))
    fitted = fit(options.seed, max(1, options.jobs // DRAW_ROWS))
    for name, value in sorted(fitted.items()):
        print(f"  {name} = {value!r}")
    rest = residuals(fitted, options.seed, max(1, options.jobs // DRAW_ROWS))
    print(f"residuals in tolerances: mean square {np.mean(rest**2):.3f}, largest {np.abs(rest).max():.2f}\n")
    if options.write:
        FILE.write_text(written(FILE.read_text("utf-8"), fitted), "utf-8")
        shipped_text.cache_clear()
        print(targets_table(judged(options.seed + 1, 200_000)))
    else:
        print("not written; held-out targets are judged with --write, on the numbers that ship")
    return 0
