"""The figures of the fleet commands, as numbers with names: what the HTML page and the plots both draw.

They follow the figures of the PAI study: job types, breakdown by type, distributions of every
share, speed-ups of the projections, step before and after, speed-up over hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

from graphcost.fleet.project import DOES_NOT_FIT, FASTER, FEWER_CNODES, INPUT, REASONS, SAME, WEIGHTS
from graphcost.fleet.result import (
    Assumption,
    AssumptionStudy,
    Characterization,
    HardwareInfo,
    Projection,
    Sweep,
    TypeStats,
)
from graphcost.report.palette import PARTS, SERIES, Ink
from graphcost.units import format_count, format_share

Result = Characterization | Projection | Sweep | AssumptionStudy

BOUNDS: Mapping[str, str] = {"about": "", "at least": ">= ", "over": "> ", "first": ""}
"""How the relation of a published figure is written before it."""
PART_NAMES = ("input", "compute", "memory", "communication")


@dataclass(frozen=True, slots=True)
class Series:
    """One ink of stacked bars; ``values``: a share in 0..1 for each bar."""

    name: str
    ink: Ink
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars of shares, one a label, from the top."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line; points from left to right."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines over one axis. ``x`` and ``y``: ``share``, ``count`` or ``times`` (a ratio, 1.7x); x is logarithmic but
    for shares.
    """

    title: str
    across: str
    up: str
    x: str
    y: str
    curves: tuple[Curve, ...]


Figure = Bars | Curves


def words(kind: str, value: float) -> str:
    """A value of a figure as it is read: ``34.5 %``, ``1,024``, ``1.74x``, ``1/64x``."""
    if kind == "share":
        return format_share(value)
    if kind == "count":
        return f"{value:,.0f}" if value < 10_000 else format_count(value)
    is_doubling = 0 < value < 0.1 and abs(log2(value) - round(log2(value))) < 1e-4
    return f"1/{1 / value:.0f}x" if is_doubling else f"{value:.3g}x"


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that belong together; ``note`` says how to read them."""

    title: str
    figures: tuple[Figure, ...]
    note: str = ""


def figures_of(found: Result) -> tuple[Group, ...]:
    """Every figure of a result."""
    return _FIGURES[type(found)](found)


def _ink(index: int) -> Ink:
    return SERIES[index % len(SERIES)]


def _characterization(found: Characterization) -> tuple[Group, ...]:
    several = len(found.types) > 1
    everything: tuple[TypeStats, ...] = (*found.types, found.overall) if several else found.types
    counts: dict[str, Callable[[TypeStats], float]] = {
        "jobs": lambda one: one.job_share,
        "cNodes": lambda one: one.cnode_share,
    }
    if found.overall.gpu_hour_share is not None:
        counts["GPU hours"] = lambda one: one.gpu_hour_share or 0.0
    types = Bars("jobs and what they occupy, by type", tuple(counts), tuple(
        Series(one.type, _ink(index), tuple(share(one) for share in counts.values()))
        for index, one in enumerate(found.types)
    ))  # fmt: skip
    whole = found.overall
    sizes = Curves("cNodes of a job", "cNodes, at most", "share", "count", "share", (
        Curve("of all jobs", tuple((size.at_most, size.jobs / whole.jobs) for size in whole.sizes)),
        Curve("of all cNodes", tuple((size.at_most, size.cnodes / whole.cnodes) for size in whole.sizes)),
    ))  # fmt: skip
    busy = [one for one in everything if one.jobs > one.idle]
    bound = Bars("largest part of the step, share of jobs", tuple(one.type for one in busy), tuple(
        Series(part, PARTS[part], tuple(one.bound[part] / (one.jobs - one.idle) for one in busy))
        for part in PART_NAMES
    ))  # fmt: skip
    weightings = {"by_job": "each job counts once", "by_cnode": "each job counts by its cNodes"}
    if found.overall.by_gpu_hour is not None:
        weightings["by_gpu_hour"] = "each job counts by its GPU hours"
    breakdowns = tuple(_breakdown(everything, which, said) for which, said in weightings.items())
    distributions = (
        Group(
            f"Distribution of every share, {said}",
            tuple(_distribution(everything, which, part, found.levels) for part in PART_NAMES),
            "A point says which share of the jobs (or of their cNodes, GPU hours) has at most that much of its step "
            "in the part.",
        )
        for which, said in weightings.items()
    )
    return (
        Group("Job types", (types, sizes, *([bound] if busy else []))),
        Group("Where the time goes", breakdowns, "Mean share of the step."),
        *distributions,
    )


def _breakdown(types: Sequence[TypeStats], which: str, said: str) -> Bars:
    return Bars(f"mean share of the step, {said}", tuple(one.type for one in types), tuple(
        Series(part, PARTS[part], tuple(getattr(getattr(one, which), part).mean for one in types))
        for part in PART_NAMES
    ))  # fmt: skip


def _distribution(types: Sequence[TypeStats], which: str, part: str, levels: Sequence[float]) -> Curves:
    curves = tuple(
        Curve(one.type, tuple(zip(getattr(getattr(one, which), part).quantiles, levels, strict=True)))
        for one in types
    )
    return Curves(part, f"{part}, share of the step", "share at or below", "share", "share", curves)


_GREEN, _BLUE, _ORANGE, _PINK, _GOLD, _GREY = (SERIES[index] for index in (2, 0, 1, 3, 4, 6))
_REASON_INKS: Mapping[str, Ink] = {
    REASONS[reason]: ink
    for reason, ink in (
        (FASTER, _GREEN), (FEWER_CNODES, _BLUE), (SAME, _GOLD), (INPUT, _ORANGE), (WEIGHTS, _PINK),
        (DOES_NOT_FIT, _GREY),
    )
}  # fmt: skip
"""Winners first."""


def _projection(found: Projection) -> tuple[Group, ...]:
    if not found.ps_jobs:
        return ()
    moved = [one for one in found.targets if one.fits]
    speedups = tuple(
        Curves(title, "speed-up", "jobs that fit, at or below", "times", "share", tuple(
            Curve(one.to, tuple(zip(getattr(one, quantiles), found.levels, strict=True))) for one in moved
        ))
        for title, quantiles in (
            ("one cNode: T / T'", "speedup_quantiles"),
            ("throughput: (n' / T') / (n / T)", "throughput_speedup_quantiles"),
        )
    )  # fmt: skip
    rows = [(f"{one.to}, {when}", parts) for one in moved
            for when, parts in (("before", one.parts_before), ("after", one.parts_after))]  # fmt: skip
    steps = Bars("mean share of the step, jobs that fit", tuple(label for label, _ in rows), tuple(
        Series(part, PARTS[part], tuple(parts[part] for _, parts in rows)) for part in PART_NAMES
    ))  # fmt: skip
    texts = [text for text in _REASON_INKS if any(text in one.reasons for one in found.targets)]
    reasons = Bars("who gains, who loses, and why", tuple(one.to for one in found.targets), tuple(
        Series(text, _REASON_INKS[text], tuple(one.reasons.get(text, 0) / one.jobs for one in found.targets))
        for text in texts
    ))  # fmt: skip
    best = Bars("architecture with the highest throughput", ("PS/Worker jobs",), tuple(
        Series(name, _ink(index), (count / found.ps_jobs,)) for index, (name, count) in enumerate(found.best.items())
    ))  # fmt: skip
    return (
        Group("Speed-up of PS/Worker jobs", speedups if moved else (), "Left of 1x a job is slower."),
        Group("Winners and losers", (reasons, best), "Shares of all PS/Worker jobs."),
        Group("The step before and after", (steps,) if moved else ()),
    )


_RESOURCES: Mapping[str, tuple[str, Callable[[HardwareInfo], float]]] = {
    "network_bytes_per_s": ("Ethernet", lambda one: one.network_bytes_per_s),
    "pcie_bytes_per_s": ("PCIe", lambda one: one.pcie_bytes_per_s),
    "peak_flops_per_s": ("GPU peak", lambda one: one.peak_flops_per_s),
    "mem_bytes_per_s": ("GPU memory", lambda one: one.mem_bytes_per_s),
}


def _sweep(found: Sweep) -> tuple[Group, ...]:
    titles = tuple(found.single[0].by_job)
    figures = []
    for title in titles:
        curves = []
        for name, (resource, base) in _RESOURCES.items():
            points = {
                getattr(point, name) / base(found.hardware): point.by_job[title]
                for point in found.single
                if getattr(point, name) is not None
            }
            curves.append(Curve(resource, tuple(sorted({**points, 1.0: 1.0}.items()))))
        figures.append(Curves(title, "resource over the base", "mean speed-up", "times", "times", tuple(curves)))
    note = "One resource at a time, the others at the base; each job counts once."
    return (Group("Speed-up over hardware, by type", tuple(figures), note),)


def _assumptions(found: AssumptionStudy) -> tuple[Group, ...]:
    wanted: tuple[tuple[str, Callable[[Assumption], float]], ...] = (
        ("communication, mean share by cNode", lambda one: one.comm_share_by_cnode),
        ("PS/Worker jobs with more throughput on AllReduce-Local", lambda one: one.gain_share),
        ("PS/Worker jobs over 80 % communication", lambda one: one.ps_over_80),
        ("PS/Worker jobs not faster per cNode", lambda one: one.not_faster_per_cnode),
    )
    cases: dict[tuple[str, float], list[Assumption]] = {}
    for one in found.assumptions:
        cases.setdefault((one.overlap, one.comm_efficiency), []).append(one)
    return tuple(
        Group(f"Overlap {overlap}", tuple(
            Curves(title, "compute efficiency", "share", "share", "share", tuple(
                Curve(
                    f"communication at {100 * comm:.0f} %",
                    tuple((one.compute_efficiency, value(one)) for one in some),
                )
                for (which, comm), some in cases.items() if which == overlap
            ))
            for title, value in wanted
        ))
        for overlap in dict.fromkeys(one.overlap for one in found.assumptions)
    )  # fmt: skip


_FIGURES: Mapping[type, Callable[[Any], tuple[Group, ...]]] = {
    Characterization: _characterization,
    Projection: _projection,
    Sweep: _sweep,
    AssumptionStudy: _assumptions,
}
