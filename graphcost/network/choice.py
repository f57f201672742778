"""Which algorithm a collective uses on a placement: the fastest of what its library offers.

A measured curve is the library's own choice and goes before everything. Where there is
none, ring and tree with each protocol, and the switch where it adds, compete with NCCL's
constants on the effective rate of the links. Every answer names its formula and source.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from math import ceil, log2
from typing import Any

from graphcost.collectives import hierarchical_all_reduce_s, moved_share
from graphcost.hardware import Cluster
from graphcost.network.curves import curve_for
from graphcost.network.links import EffectiveLink, across, inside, ring


class Collective(StrEnum):
    """Operations of a group, by their usual names."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    BROADCAST = "broadcast"
    ALL_TO_ALL = "all-to-all"


@dataclass(frozen=True, slots=True)
class Line:
    """``fixed_s + s_per_byte S``."""

    fixed_s: float
    s_per_byte: float

    def __call__(self, size_bytes: float) -> float:
        """Seconds for so many bytes."""
        return self.fixed_s + self.s_per_byte * size_bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way of doing it: its formula, where its constants are from, its time."""

    formula: str
    source: str
    seconds: Callable[[float], float] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Way:
    """A collective on a placement. ``link`` is the bottleneck; candidates compete size by size."""

    collective: Collective
    ranks: int
    link: EffectiveLink
    candidates: tuple[Candidate, ...]

    def best(self, size_bytes: float) -> Candidate:
        """The fastest candidate at this size; the first among equals."""
        return min(self.candidates, key=lambda candidate: candidate.seconds(size_bytes))

    def seconds(self, size_bytes: float) -> float:
        """Time for a payload of one rank; nothing for one rank or no bytes."""
        if self.ranks <= 1 or size_bytes <= 0:
            return 0.0
        return self.best(size_bytes).seconds(size_bytes)


def way(
    cluster: Cluster,
    gpus: int,
    servers: int = 1,
    collective: Collective = Collective.ALL_REDUCE,
    *,
    hierarchical: bool = False,
) -> Way:
    """How ``gpus`` on ``servers`` do ``collective``.

    ``hierarchical`` adds the two-level all-reduce, which libraries use only when asked.
    """
    link = ring(cluster, gpus, servers)
    if servers == 1:
        own = cluster.server.curves.get(f"{collective}.{gpus}")
        if own is not None:
            formula = f"measured {collective} curve of {gpus} GPUs on {cluster.server.id}"
            only = Candidate(formula, cluster.server.sources.get("source", "measured"), own.at)
            return Way(collective, gpus, link, (only,))
        measured = curve_for(cluster, str(collective), gpus)
        if measured is not None:
            curve, speed = measured
            formula = f"measured {collective} curve of {curve.ranks} GPUs on {curve.system}"
            only = Candidate(formula, curve.source, lambda size: curve.seconds(size, speed))
            return Way(collective, gpus, link, (only,))
    if collective is Collective.ALL_TO_ALL:
        return Way(collective, gpus, link, _exchanged(cluster, link, gpus, servers))
    found = _rings(cluster, link, gpus, servers, collective)
    if collective is Collective.ALL_REDUCE:
        found += _trees(cluster, link, gpus, servers)
        found += _switched(cluster, link, gpus, servers)
        if hierarchical and servers > 1:
            found += _two_levels(cluster, gpus, servers)
    return Way(collective, gpus, link, tuple(found))


@cache
def constants() -> dict[str, Any]:
    """``tuner.toml``."""
    return tomllib.loads(files("graphcost.network").joinpath("tuner.toml").read_text("utf-8"))


def _hops(cluster: Cluster, algorithm: str, protocol: str) -> tuple[float, float]:
    """Seconds of a hop inside a server and across. A link's own latency counts where it is longer than RDMA's."""
    table = constants()["hop_us"]
    inner = table["nvlink" if cluster.server.scale_up is not None else "pcie"][algorithm][protocol] * 1e-6
    outer = max(table["network"][algorithm][protocol] * 1e-6, cluster.server.nic.latency_s)
    return inner, outer


def _protocol_rate(cluster: Cluster, link: EffectiveLink, protocol: str) -> float:
    rate = link.bytes_per_s * float(constants()["protocol_share"][protocol])
    limits = constants()["ll_limit_bytes_per_s"]
    return min(rate, float(limits.get(cluster.device.arch, limits["Volta"]))) if protocol == "ll" else rate


def _source(link: EffectiveLink) -> str:
    return f"{constants()['source']}; {link.name}: {link.source}"


def _rings(cluster: Cluster, link: EffectiveLink, gpus: int, servers: int, collective: Collective) -> list[Candidate]:
    """Passes over the ring; a hop of every server crosses the network."""
    passes = 2 if collective is Collective.ALL_REDUCE else 1
    across_hops = passes * servers if servers > 1 else 0
    made = []
    for protocol, base_us in constants()["base_us"]["ring"].items():
        inner_s, outer_s = _hops(cluster, "ring", protocol)
        hops = passes * (gpus - 1)
        fixed_s = base_us * 1e-6 + max(0, hops - across_hops) * inner_s + min(hops, across_hops) * outer_s
        per_byte = moved_share(str(collective), gpus) / _protocol_rate(cluster, link, protocol)
        made.append(Candidate(f"ring, {protocol}", _source(link), Line(fixed_s, per_byte)))
    return made


def _trees(cluster: Cluster, link: EffectiveLink, gpus: int, servers: int) -> list[Candidate]:
    """A chain inside each server, double binary trees across: ``2 S/B`` and log2 hops. Only over several servers."""
    if servers == 1:
        return []
    share = constants()["algorithm"]["tree_share"]
    made = []
    for protocol, base_us in constants()["base_us"]["tree"].items():
        inner_s, outer_s = _hops(cluster, "tree", protocol)
        chain = ceil(gpus / servers) - 1
        fixed_s = base_us * 1e-6 + 2 * chain * inner_s + 2 * ceil(log2(servers)) * outer_s
        per_byte = 2 / (share * _protocol_rate(cluster, link, protocol))
        made.append(Candidate(f"tree, {protocol}", _source(link), Line(fixed_s, per_byte)))
    return made


def _switched(cluster: Cluster, link: EffectiveLink, gpus: int, servers: int) -> list[Candidate]:
    """The switch adds, inside one server; bus bandwidth by the convention of nccl-tests."""
    scale_up = cluster.server.scale_up
    rules = constants()["algorithm"]
    if servers > 1 or scale_up is None or not scale_up.in_network_reduce or gpus < rules["nvls_ranks"]:
        return []
    fixed_s = constants()["base_us"]["nvls"]["simple"] * 1e-6 + 2 * scale_up.latency_s
    per_byte = moved_share("all-reduce", gpus) / (rules["nvls_gain"] * link.bytes_per_s)
    return [Candidate("in the switch (NVLS)", _source(link), Line(fixed_s, per_byte))]


def _two_levels(cluster: Cluster, gpus: int, servers: int) -> list[Candidate]:
    per_server = ceil(gpus / servers)
    within, network = inside(cluster, per_server), across(cluster, servers)

    def seconds(size_bytes: float) -> float:
        return hierarchical_all_reduce_s(
            size_bytes, servers, per_server, within.bytes_per_s, network.bytes_per_s,
            within.latency_s, network.latency_s,
        )  # fmt: skip

    return [Candidate("hierarchical ring", _source(network), seconds)]


def _exchanged(cluster: Cluster, link: EffectiveLink, gpus: int, servers: int) -> tuple[Candidate, ...]:
    """Every GPU sends its own stream, so those of a server share its network."""
    inner_s, outer_s = _hops(cluster, "ring", "simple")
    per_server = ceil(gpus / servers)
    within = inside(cluster, per_server)
    per_byte = (per_server - 1) / gpus / within.bytes_per_s
    fixed_s = constants()["base_us"]["ring"]["simple"] * 1e-6 + inner_s
    if servers > 1:
        over_network = per_server * (gpus - per_server) / gpus / across(cluster, servers).bytes_per_s
        per_byte, fixed_s = max(per_byte, over_network), fixed_s + outer_s
    formula = "pairwise all-to-all" + (", the server's network shared" if servers > 1 else "")
    return (Candidate(formula, _source(link), Line(fixed_s, per_byte)),)
