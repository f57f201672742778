"""What a nominal link rate really gives: effective bandwidth by kind of link."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.hardware import Cluster, Link, LinkKind


@dataclass(frozen=True, slots=True)
class EffectiveLink:
    """A link as a step sees it: rate after protocol losses, one direction."""

    name: str
    kind: LinkKind
    bytes_per_s: float
    latency_s: float
    interference: float


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("graphcost.engine").joinpath("links.toml").read_text("utf-8"))


def effective(link: Link, name: str, *, ranks: int | None = None) -> EffectiveLink:
    """``link`` at the share of its nominal rate that its kind reaches; meshes depend on ``ranks``."""
    entry = _table().get(str(link.kind), _table()["default"])
    share = entry["share"]
    if ranks is not None and link.pair_bytes_per_s is not None:
        share = entry.get("share_by_ranks", {}).get(str(ranks), share)
    rate = min(link.bytes_per_s * share, entry.get("cap_bytes_per_s", float("inf")))
    return EffectiveLink(name, link.kind, rate, link.latency_s, entry["interference"])


def inside(cluster: Cluster, ranks: int) -> EffectiveLink:
    """The link between GPUs of one server; PCIe, shared by those behind one uplink, where there is no other."""
    server = cluster.server
    if server.scale_up is not None:
        return effective(server.scale_up, str(server.scale_up.kind), ranks=ranks)
    return effective(server.pcie, "pcie")


def across(cluster: Cluster) -> EffectiveLink:
    """The whole server's network."""
    return effective(cluster.network, "network")


def ring(cluster: Cluster, gpus: int, servers: int) -> EffectiveLink:
    """The bottleneck of a flat ring over ``gpus`` on ``servers``: the slower of inside and across.

    NCCL's ring crosses each server's NICs once in each direction, so the whole server's
    network rate is shared by no one.
    """
    within = inside(cluster, -(-gpus // servers))
    if servers == 1:
        return within
    network = across(cluster)
    if gpus == servers or network.bytes_per_s <= within.bytes_per_s:
        return network
    return EffectiveLink(within.name, within.kind, within.bytes_per_s, network.latency_s, network.interference)
