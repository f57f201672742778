"""Curves of collectives from measured times: ``python -m benchmarks.fit collectives --table collectives.csv``.

Every second size of each system, operation and group is fitted, the others are held out.
A curve has two pieces ``a + f S/B`` (one where a table has fewer than eight sizes); the
break lies where they cross, or between two sizes where the library changes protocol.
Each piece minimises relative errors over non-negative a and 1/B (scipy's nnls); the break
is the best of all. Prints the residuals; ``--write`` replaces ``graphcost/network/curves``.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from graphcost.collectives import moved_share

FOLDER = Path(__file__).parents[2] / "graphcost" / "network" / "curves"
SPLIT = "by size: sorted, every second one from the smallest on is fitted, the others are held out"
OPERATIONS = {
    "allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter", "alltoall": "all-to-all",
}  # fmt: skip
Array = NDArray[np.float64]
Pieces = tuple[tuple[float, float, float], ...]
"""Until which size, seconds, seconds per byte."""


@dataclass(frozen=True)
class Wanted:
    """A system to fit: whose rows, and what it is in the device database."""

    name: str
    origin: str  # beginning of the rows' source
    gpus: tuple[str, ...]  # as the table names them
    kind: str
    nominal_bytes_per_s: float
    devices: tuple[str, ...]
    source: str
    library: str = ""
    peer: str = ""
    ranks: tuple[int, ...] = ()  # none: all
    wire_bytes_per_s: float = 0.0  # of a mesh


_AIC = "ai-dynamo/aiconfigurator@095f58a51c systems/data (Apache-2.0), nccl-tests"
_VTRAIN = "VIA-Research/vTrain@f8dda8473a trace (MIT style), nccl-tests"
SYSTEMS = (
    Wanted(
        "v100-cube-mesh", "VIA", ("V100-SXM2",), "nvlink", 150e9, ("v100-sxm2-16", "v100-sxm2-32"), _VTRAIN,
        wire_bytes_per_s=25e9,
    ),
    Wanted("a100-nvswitch", "ai-", ("A100-SXM4",), "nvswitch", 300e9, ("a100-sxm-40", "a100-sxm-80"), _AIC),
    # Group sizes that the newer library was not measured with.
    Wanted("a100-nvswitch-odd", "VIA", ("A100-SXM4",), "nvswitch", 300e9, (), _VTRAIN, ranks=(3, 5, 6, 7)),
    Wanted("h100-nvswitch", "ai-", ("H100-SXM5",), "nvswitch", 450e9, ("h100-sxm",), _AIC),
    Wanted("h200-nvswitch", "ai-", ("H200-SXM5",), "nvswitch", 450e9, ("h200-sxm",), _AIC),
    Wanted("b200-nvswitch", "ai-", ("B200-SXM",), "nvswitch", 900e9, ("b200-sxm",), _AIC),
    Wanted("gb200-nvl72", "ai-", ("GB200",), "nvswitch", 900e9, ("gb200",), _AIC),
    Wanted("l40s-pcie4", "ai-", ("L40S",), "pcie", 24e9, ("l40s",), _AIC),
    Wanted(
        "pcie3-p2p", "baidu", ("P100 (PCIe)", "M40", "TITAN X (Maxwell)"), "pcie", 12e9,
        ("p100-pcie-16", "p100-pcie-12", "k80"), "baidu-research/DeepBench@da81ba7820 (Apache-2.0), NCCL 2.0 MPI",
        library="NCCL 2.0 MPI", peer="p2p", ranks=(2, 4, 8),
    ),
)  # fmt: skip
MERGED = {"a100-nvswitch-odd": "a100-nvswitch"}
NVLINK = ("v100", "a100", "h100", "h200", "b200", "gb200")
TARGETS = {True: 0.12, False: 0.20}


@dataclass(frozen=True)
class Fit:
    """Pieces of one curve: until which size, seconds, seconds per byte; errors as mean shares."""

    collective: str
    ranks: int
    pieces: tuple[tuple[float, float, float], ...]
    source: str
    fit_error: float
    held_out_error: float
    held_out_rows: int


def at(pieces: Sequence[tuple[float, float, float]], sizes: Array) -> Array:
    """Seconds at each size."""
    index = np.searchsorted([piece[0] for piece in pieces[:-1]], sizes, side="left")
    fixed, slope = (np.array([piece[i] for piece in pieces]) for i in (1, 2))
    return np.asarray(fixed[index] + slope[index] * sizes)


def line(sizes: Array, times: Array) -> tuple[float, float]:
    """``a, b`` of ``a + b S`` with least relative errors, neither negative."""
    solved, _ = nnls(np.stack([1 / times, sizes / times], axis=1), np.ones(len(sizes)))
    return float(solved[0]), float(max(solved[1], 1e-15))


def fit_pieces(sizes: Array, times: Array) -> Pieces:
    """Two pieces with the least mean relative error that never fall at the break; one for few sizes."""
    whole: Pieces = ((float("inf"), *line(sizes, times)),)
    best: tuple[Pieces, float] = whole, float(np.abs(at(whole, sizes) / times - 1).mean())
    # A piece needs three sizes to say anything about its two numbers.
    for cut in range(3, len(sizes) - 2) if len(sizes) >= 8 else ():
        low, high = line(sizes[:cut], times[:cut]), line(sizes[cut:], times[cut:])
        before, after = float(sizes[cut - 1]), float(sizes[cut])
        crossing = (high[0] - low[0]) / (low[1] - high[1]) if low[1] != high[1] else -1.0
        bound = crossing if before <= crossing <= after else (before * after) ** 0.5
        if high[0] + high[1] * bound < (low[0] + low[1] * bound) * (1 - 1e-9) and bound != crossing:
            continue
        pieces: Pieces = ((bound, *low), (float("inf"), *high))
        error = float(np.abs(at(pieces, sizes) / times - 1).mean())
        if error < best[1]:
            best = pieces, error
    return best[0]


def fit_group(collective: str, ranks: int, points: Mapping[float, float], source: str) -> Fit:
    """``points``: size -> seconds."""
    sizes = np.array(sorted(points))
    times = np.array([points[size] for size in sizes])
    fitted = np.arange(len(sizes)) % 2 == 0
    pieces = fit_pieces(sizes[fitted], times[fitted])
    errors = np.abs(at(pieces, sizes) / times - 1)
    return Fit(
        collective, ranks, pieces, source, float(errors[fitted].mean()), float(errors[~fitted].mean()),
        int((~fitted).sum()),
    )  # fmt: skip


def fit_system(wanted: Wanted, rows: Iterable[Mapping[str, str]]) -> list[Fit]:
    """Every operation and group of one system; several cards in equal boxes are averaged size by size."""
    times: dict[tuple[str, int], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if not row["source"].startswith(wanted.origin) or row["gpu"] not in wanted.gpus or not row["n_gpus"]:
            continue
        ranks, one_node = int(row["n_gpus"]), row["n_nodes"] in ("", "1")
        if (wanted.library and row["library"] != wanted.library) or not one_node:
            continue
        if not wanted.ranks or ranks in wanted.ranks:
            times[OPERATIONS[row["collective"]], ranks][float(row["bytes"])].append(float(row["time_us"]) * 1e-6)
    return [
        fit_group(name, ranks, {size: sum(t) / len(t) for size, t in points.items()}, wanted.source)
        for (name, ranks), points in sorted(times.items())
        if len(points) >= 4
    ]


def text_of(wanted: Wanted, fits: Sequence[Fit]) -> str:
    """The data file of one system."""
    rows = sum(fit.held_out_rows for fit in fits)
    sources = list(dict.fromkeys(fit.source for fit in fits))
    lines = [
        "# Written by `python -m benchmarks.fit collectives`; not by hand. Errors are mean shares of time.",
        "# Bandwidth is bus bandwidth: the time of a piece is latency_s + f S / bytes_per_s, f = 2 (n-1)/n for",
        "# all-reduce and (n-1)/n otherwise.",
        f'system = "{wanted.name}"',
        f'source = "{"; ".join(sources)}"',
        f'split = "{SPLIT}"',
        f'kind = "{wanted.kind}"',
        *([f'peer = "{wanted.peer}"'] if wanted.peer else []),
        f"nominal_bytes_per_s = {wanted.nominal_bytes_per_s:.4g}",
        *([f"wire_bytes_per_s = {wanted.wire_bytes_per_s:.4g}"] if wanted.wire_bytes_per_s else []),
        f"devices = [{', '.join(chr(34) + device + chr(34) for device in wanted.devices)}]",
        f"fit_error = {mean(fits, 'fit_error'):.4f}",
        f"held_out_error = {mean(fits, 'held_out_error'):.4f}",
        f"held_out_rows = {rows}",
    ]
    for fit in fits:
        share = moved_share(fit.collective, fit.ranks)
        lines += ["", "[[curve]]", f'collective = "{fit.collective}"', f"ranks = {fit.ranks}", "pieces = ["]
        for bound, fixed, slope in fit.pieces:
            upto = "" if bound == float("inf") else f"upto_bytes = {round(bound)}, "
            lines.append(f"    {{ {upto}latency_s = {fixed:.4g}, bytes_per_s = {share / slope:.4g} }},")
        lines += ["]", f"fit_error = {fit.fit_error:.4f}", f"held_out_error = {fit.held_out_error:.4f}"]
        if len(sources) > 1:
            lines.append(f'source = "{fit.source}"')
    return "\n".join(lines) + "\n"


def mean(fits: Sequence[Fit], what: str) -> float:
    """Mean over all groups of a system, each weighing the same."""
    return sum(float(getattr(fit, what)) for fit in fits) / len(fits)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit collectives", description=__doc__)
    parser.add_argument("--table", type=Path, required=True, help="collectives.csv")
    parser.add_argument("--write", action="store_true", help="replace the data files")
    options = parser.parse_args(argv)
    with options.table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, list[Fit]] = defaultdict(list)
    for wanted in SYSTEMS:
        found[MERGED.get(wanted.name, wanted.name)] += fit_system(wanted, rows)
    failed = 0
    print(f"{'system':18} curves  fitted  held out  worst curve  target")
    for wanted in SYSTEMS:
        fits = sorted(found[wanted.name], key=lambda fit: (fit.collective, fit.ranks))
        if not fits:
            continue
        target, error = TARGETS[wanted.name.startswith(NVLINK)], mean(fits, "held_out_error")
        worst = max(fits, key=lambda fit: fit.held_out_error)
        missed = error > target
        failed += missed
        print(
            f"{wanted.name:18} {len(fits):6} {mean(fits, 'fit_error'):7.1%} {error:9.1%} "
            f"{worst.held_out_error:6.1%} ({worst.collective}, {worst.ranks})  {target:.0%}{' MISSED' * missed}"
        )
        if options.write:
            FOLDER.mkdir(exist_ok=True)
            FOLDER.joinpath(f"{wanted.name}.toml").write_text(text_of(wanted, fits), encoding="utf-8")
    return 1 if failed else 0
