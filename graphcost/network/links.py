"""What a nominal link rate really gives: effective bandwidth by curve, server and kind of link."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.collectives import moved_share
from graphcost.hardware import Cluster, Link, LinkKind
from graphcost.network.curves import peer_link, system_for


@dataclass(frozen=True, slots=True)
class EffectiveLink:
    """A link as a step sees it: rate after protocol losses, one direction, and where that figure is from.

    ``interference``: share of hidden time that still costs; ``spread``: exposed time lies
    between 1/(1 + s) and (1 + s) of the prediction.
    """

    name: str
    kind: LinkKind
    bytes_per_s: float
    latency_s: float
    interference: float
    source: str = ""
    spread: float = 0.0


@cache
def _table(name: str) -> Mapping[str, Any]:
    return tomllib.loads(files("graphcost.network").joinpath(name).read_text("utf-8"))


def _entry(kind: str) -> Mapping[str, Any]:
    table = _table("links.toml")
    found: Mapping[str, Any] = table.get(kind, table["default"])
    return found


def effective(link: Link, name: str, *, ranks: int | None = None, kind: str | None = None) -> EffectiveLink:
    """``link`` at the share of its nominal rate that its kind reaches; some depend on ``ranks``, as meshes do.

    ``kind``: an entry of ``links.toml`` other than the link's own kind.
    """
    entry = _entry(kind or str(link.kind))
    share = entry["share"]
    if ranks is not None:
        groups = entry.get("share_by_ranks" if link.pair_bytes_per_s is None else "mesh_share_by_ranks", {})
        share = next((groups[size] for size in sorted(groups, key=int, reverse=True) if int(size) <= ranks), share)
    rate = min(link.bytes_per_s * share, entry.get("cap_bytes_per_s", float("inf")))
    return EffectiveLink(
        name, link.kind, rate, link.latency_s, entry["interference"], entry["source"], entry["spread"]
    )


def inside(cluster: Cluster, ranks: int) -> EffectiveLink:
    """What a ring over ``ranks`` GPUs of one server has: NVLink or its like, else PCIe.

    The order of evidence: the machine's own curve, the fabric's, the server's figures, the kind of link.
    """
    found = _inside(cluster, ranks)
    own, server = cluster.server.curves.get(f"all-reduce.{ranks}"), cluster.server
    if own is not None:
        rate = moved_share("all-reduce", ranks) * own.work[-1] / own.seconds[-1]
        found = replace(found, bytes_per_s=rate, source=server.sources.get("source", "measured"))
    return found if server.interference is None else replace(found, interference=server.interference)


def _inside(cluster: Cluster, ranks: int) -> EffectiveLink:
    server = cluster.server
    if server.scale_up is not None:
        found = effective(server.scale_up, str(server.scale_up.kind), ranks=ranks)
    else:
        found = effective(server.pcie, "pcie", ranks=ranks, kind="pcie-host" if server.pcie_peer == "host" else None)
        own = _own_rate(cluster, server.pcie, "pcie", ranks, found)
        if own is not None:
            return own
    measured = _curve_rate(cluster, ranks)
    return found if measured is None else replace(found, bytes_per_s=measured[0], source=measured[1])


def _curve_rate(cluster: Cluster, ranks: int) -> tuple[float, str] | None:
    """Bus bandwidth of the largest measured group that is no larger, else of the smallest.

    At most the wire's: a switch that adds shows more, but not to a ring that leaves the server.
    """
    system = system_for(cluster)
    groups = [] if system is None else sorted(c.ranks for c in system.curves if c.collective == "all-reduce")
    if system is None or not groups:
        return None
    curve = system.find("all-reduce", max((n for n in groups if n <= ranks), default=groups[0]))
    assert curve is not None
    link = peer_link(cluster)
    return min(link.bytes_per_s, curve.bytes_per_s * system.speed(link)), curve.source


def _own_rate(cluster: Cluster, link: Link, which: str, group: int, by_kind: EffectiveLink) -> EffectiveLink | None:
    """The server's own figure for a group, if it has one and the link is of the kind that it was measured on.

    At another nominal rate the rule by kind decides, but never against the direction of the change.
    """
    for entry in _table("servers.toml").values():
        measured = entry.get(which)
        if cluster.server.id not in entry["servers"] or measured is None or str(link.kind) != measured["kind"]:
            continue
        rates, nominal = measured["by_group"], measured["nominal_bytes_per_s"]
        rate = rates.get(str(group), rates.get("more"))
        if rate is None:
            return None
        if link.bytes_per_s == nominal:
            return replace(by_kind, bytes_per_s=rate, source=entry["source"])
        bound = max if link.bytes_per_s > nominal else min
        return replace(by_kind, bytes_per_s=bound(rate, by_kind.bytes_per_s))
    return None


def across(cluster: Cluster, servers: int = 2) -> EffectiveLink:
    """The whole server's network, as a ring over ``servers`` uses it."""
    network = cluster.network
    boxed = network.kind is LinkKind.INFINIBAND and cluster.server.scale_up is None
    found = effective(network, "network", kind="infiniband-pcie" if boxed else None)
    return _own_rate(cluster, network, "network", servers, found) or found


def many_streams(cluster: Cluster, servers: int = 2) -> EffectiveLink:
    """The same network under many connections at once, as parameter servers open them."""
    found, network = across(cluster, servers), cluster.network
    entry = _entry(str(network.kind))
    if "streams_share" not in entry:
        return found
    rate = min(network.bytes_per_s * entry["streams_share"], entry["streams_cap_bytes_per_s"])
    return replace(found, bytes_per_s=max(found.bytes_per_s, rate))


def ring(cluster: Cluster, gpus: int, servers: int) -> EffectiveLink:
    """The bottleneck of a flat ring over ``gpus`` on ``servers``: the slower of inside and across.

    NCCL's ring crosses each server's NICs once in each direction, so the whole server's
    network rate is shared by no one.
    """
    within = inside(cluster, -(-gpus // servers))
    if servers == 1:
        return within
    network = across(cluster, servers)
    if gpus == servers:
        return network
    # It runs over both links whichever is slower: with one interference, a faster link is never a slower step.
    interference = max(within.interference, network.interference)
    if network.bytes_per_s <= within.bytes_per_s:
        return replace(network, interference=interference)
    return replace(within, latency_s=network.latency_s, interference=interference)
