"""How time and memory of an analysis grow with the graph, and a 70-billion-parameter decoder.

``python -m benchmarks.scaling`` analyses chains of 2 000 to 200 000 operators (MatMul, Add,
Relu, LayerNormalization, names distinct), each in a process of its own with everything
imported, fits the exponents of processor time and memory over operators, and analyses a 70 B decoder whose
weights are absent as one whole process. Exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Sequence
from math import log
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks._files import DECODER_PARAMS, decoder_70b, mixed_chain
from benchmarks._measure import MB, heading, middle, run, table, verdict

SIZES = (2_000, 6_000, 20_000, 60_000, 200_000)
MAX_EXPONENT = 1.1
DECODER_MAX_S = 5.0
DECODER_MAX_BYTES = 500e6


def measure_one(file: Path) -> tuple[float, int, int]:
    """(processor seconds of one analysis, peak bytes it added, operators), in this process, imports done before."""
    from graphcost import analyze

    gc.set_threshold(200_000, 50, 100)  # as the command line does (graphcost/cli/main.py)
    analyze(mixed_chain(file.with_name("warm.onnx"), 8), gpus=8)
    before = _resident_bytes("VmRSS")
    start = time.process_time()
    result = analyze(file, gpus=8)
    cpu_s = time.process_time() - start
    return cpu_s, _resident_bytes("VmHWM") - before, result.graph.ops


def _resident_bytes(field: str) -> int:
    """A memory figure of this process (Linux): VmRSS now, VmHWM at its peak."""
    status = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith(f"{field}:")))


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the least-squares line through the logarithms.

    >>> exponent([1, 10, 100], [3, 300, 30000])
    2.0
    """
    xs, ys = [log(size) for size in sizes], [log(value) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    over = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return round(over / sum((x - mean_x) ** 2 for x in xs), 3)


def chains(sizes: Sequence[int], repeat: int, scratch: Path) -> list[str]:
    """Measure every size ``repeat`` times, in turn; print the table; targets missed."""
    files = {size: mixed_chain(scratch / f"chain_{size}.onnx", size) for size in sizes}
    found: dict[int, list[tuple[float, int]]] = {size: [] for size in sizes}
    for _ in range(repeat):
        for size, file in files.items():
            done = run([sys.executable, "-m", "benchmarks.scaling", "--one", str(file)], scratch)
            if done.exit_code != 0:
                raise SystemExit(f"chain of {size} operators: {done.stderr[-500:]}")
            cpu_s, added_bytes, ops = json.loads(done.stdout)
            if ops != size:
                raise SystemExit(f"chain of {size} operators: {ops} counted")
            found[size].append((cpu_s, added_bytes))
    seconds = [median(cpu_s for cpu_s, _ in found[size]) for size in sizes]
    added = [median(peak for _, peak in found[size]) for size in sizes]
    rows = [
        [f"{size:,}", f"{s:.2f} s", f"{s / size * 1e6:.0f} us", f"{peak / MB:.0f} MB", f"{peak / size / 1e3:.1f} kB"]
        for size, s, peak in zip(sizes, seconds, added, strict=True)
    ]
    print(table(["operators", "processor time", "per operator", "memory added", "per operator"], rows))
    slopes = {"time": exponent(sizes, seconds), "memory": exponent(sizes, added)}
    print(f"\nexponents: time {slopes['time']:.2f}, memory {slopes['memory']:.2f} (target <= {MAX_EXPONENT})\n")
    return [f"{of} grows with exponent {slope:.2f}" for of, slope in slopes.items() if slope > MAX_EXPONENT]


def decoder(repeat: int, scratch: Path) -> list[str]:
    """The 70 B decoder as a whole process; targets missed."""
    file = decoder_70b(scratch / "decoder_70b.onnx")
    arguments = ["--gpus", "8", "--batch", "1", "--dim", "length=4096", "--format", "json", "--quiet", "--exit-zero"]
    command = [sys.executable, "-m", "graphcost", "analyze", str(file), *arguments]
    runs = [run(command, scratch) for _ in range(repeat + 1)][1:]  # the first writes bytecode
    if any(each.exit_code != 0 for each in runs):
        raise SystemExit(f"decoder: exit {runs[0].exit_code}: {runs[0].stderr[-500:]}")
    graph = json.loads(runs[-1].stdout)["graph"]
    if graph["params"] != DECODER_PARAMS:
        raise SystemExit(f"decoder: {graph['params']} parameters counted, {DECODER_PARAMS} are right")
    wall_s, peak_bytes = middle(runs, lambda r: r.wall_s), middle(runs, lambda r: r.peak_bytes)
    row = [f"{graph['params']:,}", f"{graph['ops']:,}", f"{file.stat().st_size / MB:.1f} MB", f"{wall_s:.2f} s",
           f"{peak_bytes / MB:.0f} MB", f"< {DECODER_MAX_S:g} s, < {DECODER_MAX_BYTES / MB:.0f} MB"]  # fmt: skip
    print(table(["decoder: parameters", "operators", "file", "whole process", "peak", "target"], [row]))
    missed = []
    if wall_s >= DECODER_MAX_S:
        missed.append(f"decoder: {wall_s:.2f} s")
    if peak_bytes >= DECODER_MAX_BYTES:
        missed.append(f"decoder: {peak_bytes / MB:.0f} MB")
    return missed


def main() -> int:
    """Measure, print the tables, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each size (default 3)")
    parser.add_argument("--max-operators", type=int, default=max(SIZES), help="leave larger chains out")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(measure_one(arguments.one)))
        return 0
    print(heading("python -m benchmarks.scaling " + " ".join(sys.argv[1:])))
    with TemporaryDirectory() as scratch:
        missed = chains([s for s in SIZES if s <= arguments.max_operators], arguments.repeat, Path(scratch))
        missed += decoder(arguments.repeat, Path(scratch))
    return verdict(missed)


if __name__ == "__main__":
    sys.exit(main())
