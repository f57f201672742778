"""Speed and memory of the fleet commands' equations, on one core.

``python -m benchmarks.fleet_scale [--rows N] [--largest N]`` measures, in one run:

1. a million jobs x 4 architectures x 8 hardware points, the steps summed by
   architecture and point: whole columns against the same equations as a plain function called row by row
   (timed on some of the jobs and scaled up; its results must be equal to the last bit), and
   against copying the five columns that an evaluation reads through memory once, although they
   are read for every architecture and point.
2. ``graphcost fleet characterize`` as a whole process from 10^4 jobs on: the exponent of its
   processor time (the least of three runs, without the start-up that small tables cost alone), and its
   peak memory.

Exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks._measure import MB, heading, run, table, verdict
from graphcost.device_db import load_cluster
from graphcost.fleet import Hardware, generate, hardware_of
from graphcost.fleet.evaluate import Evaluator
from graphcost.fleet.jobs import PIECE_ROWS, Jobs
from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, LOCAL, PS

ARCHS = (LOCAL, PS, ALLREDUCE_LOCAL, ALLREDUCE_CLUSTER)
LEAST_FASTER, MOST_COPIES = 200, 20
MOST_EXPONENT, MOST_BYTES = 1.1, 8e9
PLAIN_ROWS = 10_000
SCALE_REPEATS = 3


def points() -> list[Hardware]:
    """Two networks, two PCIe, two memories of Table III."""
    base = load_cluster("pai-paper-base")
    return [
        hardware_of(base.with_overrides(network_bytes_per_s=network, pcie_bytes_per_s=pcie, mem_bytes_per_s=memory))
        for network, pcie, memory in product((25e9 / 8, 100e9 / 8), (10e9, 50e9), (1e12, 2e12))
    ]


def jobs(rows: int) -> Jobs:
    """Features over the ranges of the study's case studies; cNodes that every architecture can hold."""
    random = np.random.default_rng(3)

    def feature(low: float, high: float) -> np.ndarray:
        return np.rint(np.exp(random.uniform(np.log(low), np.log(high), rows)))

    cnodes = random.integers(1, 9, rows).astype(float)
    return Jobs(
        np.full(rows, PS.code, dtype=np.uint8), cnodes, feature(1, 4096), feature(1e4, 1e9), feature(1e11, 1e13),
        feature(1e10, 1e12), feature(1e7, 1e10), feature(1e7, 1e10), feature(1e7, 1e10), np.ones(rows, dtype=bool),
    )  # fmt: skip


def whole_columns(work: Jobs, hardware: Sequence[Hardware]) -> np.ndarray:
    """Every job under every architecture on every point; all steps together by architecture and point."""
    sums = np.zeros((len(ARCHS), len(hardware)))
    for first in range(0, len(work), PIECE_ROWS):
        piece = Evaluator(work.take(slice(first, first + PIECE_ROWS)))
        for row, kind in enumerate(ARCHS):
            for column, point in enumerate(hardware):
                sums[row, column] += np.add.reduce(piece.step_s(kind, point))
    return sums


@dataclass(frozen=True)
class Job:
    """A row, as anybody would hold it."""

    cnodes: int
    input_bytes: float
    flops: float
    mem_bytes: float
    weight_bytes: float


@dataclass(frozen=True)
class Rates:
    """A hardware point: nominal rates."""

    network: float
    pcie: float
    nvlink: float
    peak: float
    memory: float


def step_of(job: Job, arch: str, rates: Rates) -> tuple[float, float, float, float, float]:
    """The study's equations for one job."""
    sharing, media = 1, []
    if arch == "local":
        sharing = job.cnodes
        media = [rates.pcie] if job.cnodes > 1 else []
    elif arch == "ps":
        media = [rates.network, rates.pcie]
    else:
        sharing = -(-job.cnodes // -(-job.cnodes // 8))
        media = [rates.nvlink] if arch == "allreduce-local" else [rates.network, rates.nvlink]
    input_s = job.input_bytes * sharing / (0.7 * rates.pcie)
    compute_s = job.flops / (0.7 * rates.peak)
    memory_s = job.mem_bytes / (0.7 * rates.memory)
    weight_s = 0.0
    for rate in media:
        weight_s += job.weight_bytes / (0.7 * rate)
    return input_s, compute_s, memory_s, weight_s, input_s + compute_s + memory_s + weight_s


def as_rows(work: Jobs) -> list[Job]:
    columns = (work.cnodes, work.input_bytes, work.flops, work.mem_bytes, work.weight_bytes)
    return [Job(int(n), *rest) for n, *rest in zip(*(column.tolist() for column in columns), strict=True)]


def as_rates(hardware: Hardware) -> Rates:
    cluster = hardware.cluster
    assert cluster.server.scale_up is not None
    return Rates(
        cluster.network.bytes_per_s, cluster.server.pcie.bytes_per_s, cluster.server.scale_up.bytes_per_s,
        cluster.device.peak("fp32"), cluster.device.mem_bytes_per_s,
    )  # fmt: skip


def row_by_row(rows: Sequence[Job], points: Sequence[Rates]) -> list[list[float]]:
    """The same sums, one job after another."""
    sums = [[0.0] * len(points) for _ in ARCHS]
    for job in rows:
        for row, kind in enumerate(ARCHS):
            for column, rates in enumerate(points):
                sums[row][column] += step_of(job, kind.id, rates)[-1]
    return sums


def copy_columns(work: Jobs, into: np.ndarray) -> None:
    """The columns that an evaluation reads, through memory once."""
    for index, column in enumerate((work.cnodes, work.input_bytes, work.flops, work.mem_bytes, work.weight_bytes)):
        np.copyto(into[index], column)


def best(action: Callable[[], object], repeat: int) -> float:
    """The least of some timings, in seconds of processor time: other work on the core does not count."""
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def speed(rows: int, repeat: int) -> list[str]:
    """Part 1; targets that were missed."""
    hardware, work = points(), jobs(rows)
    few = work.take(slice(0, PLAIN_ROWS))
    check_equal(few, hardware)
    evaluations = len(ARCHS) * len(hardware)
    into = np.zeros((5, rows))
    columns_s = best(lambda: whole_columns(work, hardware), repeat)
    copy_s = best(lambda: copy_columns(work, into), 5 * repeat)
    plain, rates = as_rows(few), [as_rates(point) for point in hardware]
    plain_s = best(lambda: row_by_row(plain, rates), repeat) * rows / PLAIN_ROWS
    faster, copies = plain_s / columns_s, columns_s / copy_s
    header = ["jobs x archs x hardware", "whole columns", "a step", "row by row", "faster", "copying once", "of that"]
    line = [
        f"{rows:,} x {len(ARCHS)} x {len(hardware)}", f"{columns_s:.4f} s",
        f"{columns_s / (rows * evaluations) * 1e9:.2f} ns", f"{plain_s:.1f} s", f"{faster:.0f}x",
        f"{copy_s:.5f} s", f"{copies:.1f}x",
    ]  # fmt: skip
    print(table(header, [line]))
    print(
        f"row by row: timed on {PLAIN_ROWS:,} jobs and scaled up. Copying: five columns, once; an evaluation takes "
        f"{copies / evaluations:.2f}x that\n"
    )
    missed = [] if faster >= LEAST_FASTER else [f"{faster:.0f}x as fast as row by row, {LEAST_FASTER}x promised"]
    return missed + ([] if copies <= MOST_COPIES else [f"{copies:.1f}x copying, at most {MOST_COPIES}x promised"])


def check_equal(few: Jobs, hardware: Sequence[Hardware]) -> None:
    """Both ways give the same numbers to the last bit."""
    piece, rows = Evaluator(few), as_rows(few)
    for kind in ARCHS:
        for point in hardware:
            times = piece.times(kind, point)
            parts = (times.input_s, times.compute_s, times.memory_s, times.weight_s, piece.step_s(kind, point))
            ours = np.stack(parts)
            theirs = np.array([step_of(job, kind.id, as_rates(point)) for job in rows]).T
            if not np.array_equal(ours, theirs):
                raise SystemExit(f"{kind.id}: whole columns and rows differ")


def scale(largest: int) -> list[str]:
    """Part 2; targets that were missed."""
    counts = [n for n in (10**4, 10**5, 10**6, 10**7) if n <= largest]
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "jobs.parquet")
        for count in counts:
            generate(str(file), seed=1, count=count)
            characterize = [sys.executable, "-m", "graphcost", "fleet", "characterize", str(file), "--format", "json"]
            runs = [run(characterize, Path(folder)) for _ in range(SCALE_REPEATS)]
            done = min(runs, key=lambda one: one.cpu_s)
            if any(one.exit_code for one in runs):
                raise SystemExit("".join(one.stderr for one in runs))
            measured.append((count, file.stat().st_size, done.wall_s, done.cpu_s, done.peak_bytes))
    rows = [
        [f"{count:,}", f"{size / MB:.0f} MB", f"{wall:.2f} s", f"{cpu:.2f} s", f"{peak / MB:.0f} MB"]
        for count, size, wall, cpu, peak in measured
    ]
    print(table(["jobs", "file", "wall", "processor", "peak memory"], rows))
    missed = []
    if len(measured) > 2:
        start_s = min(entry[3] for entry in measured)
        kept = [(count, cpu - start_s) for count, _, _, cpu, _ in measured if cpu > 1.2 * start_s]
        (n1, cpu1), (n2, cpu2) = kept[0], kept[-1]
        exponent = float(np.log(cpu2 / cpu1) / np.log(n2 / n1)) if len(kept) > 1 else 0.0
        print(
            f"exponent of processor time from {n1:,} to {n2:,} jobs: {exponent:.3f} (target at most {MOST_EXPONENT})"
        )
        if exponent > MOST_EXPONENT:
            missed.append(f"exponent {exponent:.2f}")
    peak = max(entry[4] for entry in measured)
    print(f"peak memory {peak / MB:.0f} MB (target under {MOST_BYTES / MB:.0f} MB)")
    return missed + ([] if peak < MOST_BYTES else [f"peak memory {peak / MB:.0f} MB"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--largest", type=int, default=10**7, help="largest table of the second part; 0 skips it")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(heading("python -m benchmarks.fleet_scale " + " ".join(sys.argv[1:])) + "on one core\n")
    missed = speed(options.rows, options.repeat)
    return verdict(missed + (scale(options.largest) if options.largest else []))


if __name__ == "__main__":
    sys.exit(main())
