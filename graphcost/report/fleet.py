"""``graphcost fleet`` as text, JSON and an HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from graphcost.fleet.result import (
    Assumption,
    AssumptionStudy,
    Breakdown,
    Characterization,
    HardwareInfo,
    Projection,
    Source,
    Sweep,
    SweepPoint,
    Target,
    TypeStats,
)
from graphcost.report.fleet_figures import BOUNDS, Result
from graphcost.report.tables import DEFAULT_WIDTH, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.units import format_bandwidth, format_bits, format_flops_per_s, format_share

_PARTS = ("input", "compute", "memory", "communication")
_SHOWN_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_WEIGHTINGS = {"by_job": "each job counts once", "by_cnode": "each job counts by its cNodes",
               "by_gpu_hour": "each job counts by its GPU hours"}  # fmt: skip
_BEST_COMBINATIONS = 5


def render_fleet(found: Result, form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """A result of the fleet commands in one of ``FLEET_FORMATS``."""
    return FLEET_FORMATS[form](found, width)


def _json(found: Result, width: int) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(found)}, indent=2, allow_nan=False)


def _html(found: Result, width: int) -> str:
    from graphcost.report.page.fleet import fleet_page

    head = [line for line in _head(found.table, found.hardware) if line != found.table.mark]
    return fleet_page(found, head, _SAID[type(found)](found))


def _text(found: Result, width: int) -> str:
    body = _TEXTS[type(found)](found, width)
    return "\n".join([*_head(found.table, found.hardware), "", *body]).rstrip("\n") + "\n"


def _head(table: Source, hardware: HardwareInfo) -> list[str]:
    lines = [f"{table.file}: {table.jobs:,} jobs, {table.cnodes:,.0f} cNodes"]
    if table.mark:
        lines.append(table.mark)
    rates = [
        f"network {format_bits(hardware.network_bytes_per_s)}",
        f"PCIe {format_bandwidth(hardware.pcie_bytes_per_s)}",
    ]
    if hardware.nvlink_bytes_per_s is not None:
        rates.append(f"NVLink {format_bandwidth(hardware.nvlink_bytes_per_s)}")
    rates += [f"{format_flops_per_s(hardware.peak_flops_per_s)} {hardware.precision}",
              f"memory {format_bandwidth(hardware.mem_bytes_per_s)}"]  # fmt: skip
    sharing = (
        "all cNodes of a server" if hardware.input_sharing is None else f"at most {hardware.input_sharing} cNodes"
    )
    lines.append(f"{hardware.cluster}, {hardware.device}, {hardware.profile} profile: {', '.join(rates)}")
    lines.append(f"input copies: {sharing} share one PCIe")
    lines += [f"  {note}" for note in hardware.notes]
    return lines


def _characterization(found: Characterization, width: int) -> list[str]:
    everything: tuple[TypeStats, ...] = (*found.types, found.overall) if len(found.types) > 1 else found.types
    counts = [
        [one.type, f"{one.jobs:,}", format_share(one.job_share), f"{one.cnodes:,.0f}", format_share(one.cnode_share),
         *(f"{one.bound[part]:,}" for part in _PARTS)]
        for one in everything
    ]  # fmt: skip
    lines = [
        table_text(
            ("type", "jobs", "share", "cNodes", "share", "input-bound", "compute", "memory", "communication"), counts,
            right=range(1, 9), width=width,
        )
    ]  # fmt: skip
    for weighting, title in _WEIGHTINGS.items():
        rows = [_share_row(one.type, getattr(one, weighting)) for one in everything if getattr(one, weighting)]
        if rows:
            lines.append(
                table_text(
                    ("type", *_PARTS, "over 50 %", "over 80 %", "input > 50 %"), rows, right=range(1, 8),
                    width=width, title=f"mean share of the step, {title}",
                )
            )  # fmt: skip
    picked = [found.levels.index(level) for level in _SHOWN_LEVELS]
    for part in ("communication", "input"):
        rows = [
            [one.type, *(format_share(getattr(one.by_job, part).quantiles[index]) for index in picked)]
            for one in everything
        ]
        lines.append(
            table_text(
                ("type", *(f"{level:.0%}" for level in _SHOWN_LEVELS)), rows, right=range(1, 6), width=width,
                title=f"quantiles of {part}'s share, each job counts once",
            )
        )  # fmt: skip
    lines += _characterization_said(found)
    if found.targets:
        lines.append(targets_table(found.targets, width=width))
    return lines


def _characterization_said(found: Characterization) -> list[str]:
    idle = found.overall.idle
    return [f"{idle:,} jobs take no time: all their features are 0"] if idle else []


def _share_row(title: str, broken: Breakdown) -> list[str]:
    means = [format_share(getattr(broken, part).mean) for part in _PARTS]
    tails = (broken.communication.over_50, broken.communication.over_80, broken.input.over_50)
    return [title, *means, *(format_share(value) for value in tails)]


def targets_table(targets: Sequence[Target], *, width: int = DEFAULT_WIDTH) -> str:
    """Published figures against this run: those that the population was fitted to, then those held out."""
    titles = {
        "fitted": "fitted: the population was made to agree with these, which proves nothing",
        "held-out": "held out: the fit has not seen these",
    }
    lines = []
    for use, title in titles.items():
        chosen = [one for one in targets if one.use == use]
        if not chosen:
            continue
        rows = [
            [one.what, f"{BOUNDS[one.relation]}{_figure(one.value)}", _figure(one.got), "yes" if one.met else "NO",
             one.tag.partition(";")[0]]
            for one in chosen
        ]  # fmt: skip
        lines.append(
            table_text(
                ("figure", "published", "here", "met", "what the figure is worth"), rows, right=(1, 2),
                width=max(width, _TARGETS_WIDTH), title=title,
            )
        )  # fmt: skip
    return "\n".join(lines)


_TARGETS_WIDTH = 165
"""Columns that the table needs; narrower it would cut its reasons."""


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _projection(found: Projection, width: int) -> list[str]:
    first, *rest = _projection_said(found)
    if not found.ps_jobs:
        return [first]
    middle = found.levels.index(0.5)
    rows = [
        [one.to, f"{one.fits:,}", format_share(one.faster_per_cnode / one.jobs), format_share(one.gain_share),
         format_share(one.gain_share_of_fitting), f"{one.mean_speedup:.2f}x", f"{one.speedup_quantiles[middle]:.2f}x",
         f"{one.mean_throughput_speedup:.2f}x", f"{one.throughput_speedup_quantiles[middle]:.2f}x"]
        for one in found.targets
    ]  # fmt: skip
    lines = [
        first,
        table_text(
            ("to", "fit", "faster per cNode", "more throughput", "of fitting", "speed-up", "median", "throughput",
             "median"),
            rows, right=range(1, 9), width=max(width, 110),
        ),
    ]  # fmt: skip
    shares = [
        [one.to, format_share(one.comm_share_before), format_share(one.comm_share_after),
         format_share(one.input_share_after)]
        for one in found.targets
    ]  # fmt: skip
    lines.append(
        table_text(
            ("to", "communication before", "after", "input after"), shares, right=range(1, 4), width=width,
            title="mean share of the step, jobs that fit",
        )
    )  # fmt: skip
    for one in found.targets:
        reasons = [
            [text, f"{count:,}", format_share(count / one.jobs)]
            for text, count in sorted(one.reasons.items(), key=lambda item: -item[1])
        ]
        lines.append(
            table_text(("", "jobs", "share"), reasons, right=(1, 2), width=width, title=one.to, header=False)
        )
    return lines + rest


def _projection_said(found: Projection) -> list[str]:
    if not found.ps_jobs:
        return [f"no PS/Worker jobs to project; {found.other_jobs:,} others stay as they are"]
    best = ", ".join(f"{name} {count:,}" for name, count in found.best.items())
    lines = [
        f"{found.ps_jobs:,} PS/Worker jobs projected; {found.other_jobs:,} others stay as they are",
        f"highest throughput: {best}; mean {found.best_mean_throughput_speedup:.2f}x",
        "of jobs that fit and gain nothing on allreduce-local, "
        f"{format_share(found.local_losers_helped_by_cluster)} gain on allreduce-cluster",
    ]
    if unstated := found.targets[0].unstated:
        lines.append(
            f"{unstated:,} jobs do not say how large their model is (dense_model_bytes, sparse_model_bytes): taken "
            "to fit where what their step moves does, a lower bound"
        )
    return lines


def _sweep(found: Sweep, width: int) -> list[str]:
    titles = list(found.single[0].by_job)
    rows = [[_rates(point), *(f"{point.by_job[title]:.3f}x" for title in titles)] for point in found.single]
    lines = [
        table_text(
            ("one resource at a time", *titles), rows, right=range(1, len(titles) + 1), width=max(width, 130),
            title="mean speed-up over jobs, each job counts once",
        )
    ]  # fmt: skip
    best = sorted(found.combined, key=lambda point: -point.by_job["all"])[:_BEST_COMBINATIONS]
    kept = [title for title in titles if title in found.combined[0].by_job]
    rows = [[_rates(point), *(f"{point.by_job[title]:.3f}x" for title in kept)] for point in best]
    lines.append(
        table_text(
            (f"best of {len(found.combined)} combinations", *kept), rows, right=range(1, len(kept) + 1),
            width=max(width, 150),
        )
    )  # fmt: skip
    order = [
        [one.type, ", ".join(f"{name} {one.speedup_at_largest[name]:.2f}x" for name in one.order)]
        for one in found.sensitivity
    ]
    lines.append(table_text(("type", "most sensitive first, at the largest candidate"), order, width=max(width, 130)))
    return lines + _sweep_said(found)


def _sweep_said(found: Sweep) -> list[str]:
    lines = []
    if found.ethernet_speedup is not None:
        lines.append(
            f"Ethernet 25 -> 100 Gb/s: PS/Worker jobs {found.ethernet_speedup:.2f}x on average; no job can gain more "
            f"than {found.ethernet_cap:.2f}x"
        )
    lines.append(f"candidates: {found.candidates_source}")
    return lines


def _rates(point: SweepPoint) -> str:
    parts = []
    if point.network_bytes_per_s is not None:
        parts.append(f"Ethernet {format_bits(point.network_bytes_per_s)}")
    if point.pcie_bytes_per_s is not None:
        parts.append(f"PCIe {format_bandwidth(point.pcie_bytes_per_s)}")
    if point.peak_flops_per_s is not None:
        parts.append(f"peak {format_flops_per_s(point.peak_flops_per_s)}")
    if point.mem_bytes_per_s is not None:
        parts.append(f"memory {format_bandwidth(point.mem_bytes_per_s)}")
    return ", ".join(parts)


def _assumptions(found: AssumptionStudy, width: int) -> list[str]:
    rows = [_assumption_row(one) for one in found.assumptions]
    return [
        table_text(
            ("overlap", "compute eff.", "comm. eff.", "comm. share", "largest part", "PS/Worker comm.", "over 80 %",
             "gain on AR-Local", "not faster", "holds"),
            rows, right=range(1, 9), width=max(width, 130),
        ),
        *_assumptions_said(found),
    ]  # fmt: skip


def _assumptions_said(found: AssumptionStudy) -> list[str]:
    held = sum(one.holds for one in found.assumptions)
    return [f"conclusion: {found.conclusion}; it holds in {held} of {len(found.assumptions)} cases"]


def _assumption_row(one: Assumption) -> list[str]:
    shares = (one.ps_comm_share, one.ps_over_80, one.gain_share, one.not_faster_per_cnode)
    return [
        one.overlap, format_share(one.compute_efficiency), format_share(one.comm_efficiency),
        format_share(one.comm_share_by_cnode), one.largest_part, *(format_share(value) for value in shares),
        "yes" if one.holds else "NO",
    ]  # fmt: skip


_TEXTS: Mapping[type, Callable[[Any, int], list[str]]] = {
    Characterization: _characterization,
    Projection: _projection,
    Sweep: _sweep,
    AssumptionStudy: _assumptions,
}

_SAID: Mapping[type, Callable[[Any], list[str]]] = {
    Characterization: _characterization_said,
    Projection: _projection_said,
    Sweep: _sweep_said,
    AssumptionStudy: _assumptions_said,
}

FLEET_FORMATS: Mapping[str, Callable[[Any, int], str]] = {"text": _text, "json": _json, "html": _html}
