"""What faster hardware would give each type of job: Table III, one resource at a time and all combinations.

Source: PAI study, hardware variations; speed-ups are averages over jobs of a type.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from graphcost._version import __version__
from graphcost.engine.paper import transfer_s
from graphcost.fleet.characterize import hardware_info, source_of
from graphcost.fleet.evaluate import Evaluator
from graphcost.fleet.jobs import Column, Jobs, ratio
from graphcost.fleet.kinds import ALLREDUCE_LOCAL, KINDS, PS, JobKind
from graphcost.fleet.rates import Hardware, hardware_of
from graphcost.fleet.result import Sensitivity, Sweep, SweepPoint
from graphcost.fleet.table import open_jobs
from graphcost.fleet.tally import WeightedMean
from graphcost.units import parse_bandwidth, parse_flops_per_s

ETHERNET_FROM_BYTES_PER_S = parse_bandwidth("25Gb/s")
ETHERNET_TO_BYTES_PER_S = parse_bandwidth("100Gb/s")
"""The abstract's question."""

PROJECTED = "PS/Worker on AllReduce-Local"
"""PS/Worker jobs after the projection, as a type of their own."""

_FIELDS = {
    "network": "network_bytes_per_s", "pcie": "pcie_bytes_per_s", "peak": "peak_flops_per_s",
    "mem_bandwidth": "mem_bytes_per_s",
}  # fmt: skip


@cache
def table_iii() -> Mapping[str, Any]:
    """The file, values parsed to base units: resource -> title and values."""
    data = tomllib.loads(files("graphcost.fleet").joinpath("table_iii.toml").read_text("utf-8"))
    parsed: dict[str, Any] = {"source": data["source"]}
    for name in _FIELDS:
        parse = parse_flops_per_s if name == "peak" else parse_bandwidth
        parsed[name] = {"title": data[name]["title"], "values": tuple(parse(text) for text in data[name]["values"])}
    return parsed


def _base_rates(hardware: Hardware) -> dict[str, float]:
    cluster = hardware.cluster
    return {
        "network": cluster.network.bytes_per_s, "pcie": cluster.server.pcie.bytes_per_s,
        "peak": cluster.device.peak(hardware.precision), "mem_bandwidth": cluster.device.mem_bytes_per_s,
    }  # fmt: skip


@dataclass(slots=True)
class _Point:
    """One combination of rates, and the mean speed-ups there."""

    rates: Mapping[str, float]
    hardware: Hardware
    by_job: dict[str, WeightedMean] = field(default_factory=dict)
    by_cnode: dict[str, WeightedMean] = field(default_factory=dict)

    def add(self, title: str, jobs: Jobs, kind: JobKind, piece: Evaluator, base_s: Column) -> None:
        speedup = ratio(base_s, piece.step_s(kind, self.hardware), empty=1.0)
        self.by_job.setdefault(title, WeightedMean()).add(speedup)
        self.by_cnode.setdefault(title, WeightedMean()).add(speedup, jobs.cnodes)

    def result(self) -> SweepPoint:
        def means(tallies: Mapping[str, WeightedMean]) -> dict[str, float]:
            found = {title: tally.mean for title, tally in tallies.items()}
            whole = WeightedMean()
            for title, tally in tallies.items():
                whole = whole.merged(tally) if title != PROJECTED else whole
            return {**found, "all": whole.mean}

        rates = {name: self.rates.get(key) for key, name in _FIELDS.items()}
        return SweepPoint(**rates, varied=tuple(self.rates), by_job=means(self.by_job), by_cnode=means(self.by_cnode))


def _point(hardware: Hardware, rates: Mapping[str, float]) -> _Point:
    overrides: dict[str, Any] = {_FIELDS[name]: value for name, value in rates.items()}
    cluster = hardware.cluster.with_overrides(**overrides)
    return _Point(rates, hardware_of(cluster, hardware.profile, hardware.precision))


def sweep(source: str, hardware: Hardware, *, input_sharing: int | None = None) -> Sweep:
    """Mean speed-ups of every type over ``hardware`` at each point of Table III.

    Raises ``DataFileError`` for a table that cannot be read.
    """
    table = open_jobs(source)
    candidates = table_iii()
    single = [_point(hardware, {name: value}) for name in _FIELDS for value in candidates[name]["values"]]
    combined = [
        _point(hardware, dict(zip(_FIELDS, values, strict=True)))
        for values in product(*(candidates[name]["values"] for name in _FIELDS))
    ]
    slow = _point(hardware, {"network": ETHERNET_FROM_BYTES_PER_S})
    fast = next(point for point in single if point.rates == {"network": ETHERNET_TO_BYTES_PER_S})
    ethernet = WeightedMean()
    found: set[int] = set()
    jobs_seen, cnodes = 0, 0.0
    for _, jobs in table.blocks(hardware.cluster):
        jobs_seen += len(jobs)
        cnodes += float(jobs.cnodes.sum())
        for kind, _, some in jobs.by_kind():
            found.add(kind.code)
            piece = Evaluator(some, input_sharing=input_sharing)
            base_s = piece.step_s(kind, hardware)
            for point in (*single, *combined):
                point.add(kind.title, some, kind, piece, base_s)
            if kind is PS:
                # The abstract's question starts at 25 Gb/s, whatever the base network.
                steps = [piece.step_s(kind, one.hardware) for one in (slow, fast)]
                ethernet.add(ratio(*steps, empty=1.0))
                _projected(some, hardware, input_sharing, single)
    titles = [kind.title for kind in KINDS if kind.code in found]
    titles += [PROJECTED] if PS.code in found else []
    results = tuple(point.result() for point in single)
    return Sweep(
        graphcost_version=__version__,
        command="fleet sweep",
        table=source_of(table, jobs_seen, cnodes),
        hardware=hardware_info(hardware, input_sharing),
        candidates_source=candidates["source"],
        single=results,
        combined=tuple(point.result() for point in combined),
        sensitivity=tuple(_sensitivity(title, single, results) for title in titles),
        ethernet_speedup=ethernet.mean if ethernet.weight else None,
        ethernet_cap=ethernet_cap(slow.hardware, fast.hardware),
    )


def _projected(jobs: Jobs, hardware: Hardware, input_sharing: int | None, points: list[_Point]) -> None:
    """The same for PS/Worker jobs on AllReduce-Local."""
    cnodes = jobs.cnodes.clip(max=hardware.cluster.server.gpus)
    piece = Evaluator(jobs, input_sharing=input_sharing, cnodes=cnodes)
    base_s = piece.step_s(ALLREDUCE_LOCAL, hardware)
    for point in points:
        point.add(PROJECTED, jobs, ALLREDUCE_LOCAL, piece, base_s)


def ethernet_cap(slow: Hardware, fast: Hardware) -> float:
    """The most that a PS/Worker job can gain: the ratio of its weight times."""
    before, after = (float(transfer_s(1.0, one.of(PS).weight_bytes_per_s)) for one in (slow, fast))
    return before / after


def _sensitivity(title: str, points: list[_Point], results: tuple[SweepPoint, ...]) -> Sensitivity:
    """Resources by the mean speed-up that their largest candidate gives."""
    largest: dict[str, float] = {}
    for name in _FIELDS:
        top = max(table_iii()[name]["values"])
        result = next(r for p, r in zip(points, results, strict=True) if p.rates == {name: top})
        largest[table_iii()[name]["title"]] = result.by_job[title]
    order = tuple(sorted(largest, key=lambda resource: -largest[resource]))
    return Sensitivity(title, order, largest)
