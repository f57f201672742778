"""Parameter servers as implementations build them: what a step sends, one function a style.

``S`` all gradients, ``m`` worker servers of ``g`` GPUs, ``P`` parameter servers. Co-located servers keep
the share that their own host's workers want off the network; the form is otherwise the same (derived, not measured).
Constants and where they are from: ``graphcost/network/parameter_servers.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.arch._base import Exchange, Payload, Placement, PsOn, PsStyle
from graphcost.collectives import push_or_pull_s
from graphcost.engine.timeline import Bucketing
from graphcost.network.links import EffectiveLink, effective, inside, many_streams


@cache
def _constants() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files("graphcost.network").joinpath("parameter_servers.toml").read_text("utf-8"))


def ps_exchanges(payload: Payload, placement: Placement) -> tuple[Exchange, ...]:
    """What workers exchange with parameter servers for ``payload`` in the placement's style."""
    if not payload or sum(part_bytes for part_bytes, _ in payload) == 0:
        return ()
    return _STYLES[placement.ps_style](payload, placement)


def serving_s(payload: Payload, placement: Placement) -> float:
    """Seconds that the fullest parameter server's network is busy for one step of every worker.

    What comes in and what goes out are added, as in the measured forms. 0 where variables lie on the workers:
    what a server sends then is what it takes in, whoever waits.
    """
    size, ps = _size(payload), placement.ps
    if not ps or not size or placement.ps_style.always_colocated:
        return 0.0
    rate, imbalance, senders = many_streams(placement.cluster, placement.servers).bytes_per_s, 1.0, 1
    if placement.ps_style is PsStyle.GRPC:
        rate = min(rate, _constants()["grpc"]["process_bytes_per_s"])
        imbalance = max(1.0, ps * max(part_bytes for part_bytes, _ in payload) / size)
        senders = placement.gpus_per_server
    _, to_servers = _crossing(replace(placement, asynchronous=False), senders)
    return 2 * imbalance * to_servers * size / (ps * rate)


def _byteps(payload: Payload, placement: Placement) -> tuple[Exchange, ...]:
    """Summed inside the server, then ``2 max(S/B, m S/(P B))`` over the network, piece by piece in both directions.

    Parts are equal, so no server is fuller; a part is pulled as soon as it is summed, so
    all of it can hide. The ring inside runs beside it and counts where it is the slower.
    Without parameter servers (``ps`` 0) one server sums by itself.
    """
    table, size = _constants()["byteps"], _size(payload)
    network = many_streams(placement.cluster, placement.servers)
    local = inside(placement.cluster, placement.gpus_per_server)
    per_server, ps = placement.gpus_per_server, placement.ps
    from_host, to_servers = _crossing(placement, 1)

    def seconds(size_bytes: float) -> float:
        within = 2 * (per_server - 1) / per_server * size_bytes / local.bytes_per_s
        if not ps:
            return within
        return max(within, 2 * push_or_pull_s(
            size_bytes, from_host, to_servers, ps, 1.0, network.bytes_per_s, network.bytes_per_s, network.latency_s
        ))  # fmt: skip

    how = Bucketing("byteps", table["partition_bytes"], table["partition_bytes"])
    link = network if ps else local
    return (
        Exchange(
            "push and pull", link.name, _kind(placement), payload, 2 * from_host * size, seconds, True,
            table["interference"], _formula("max(2 S/B, 2 m S/(P B), 2 (g-1)/g S/B inside)", placement),
            _source(table, link, placement), how, link.spread,
        ),
    )  # fmt: skip


def _grpc(payload: Payload, placement: Placement) -> tuple[Exchange, ...]:
    """Every GPU pulls (exposed) and pushes (hides) by itself, through one process a server.

    A variable is not split, so the largest decides how full the fullest server is:
    ``max(g S/B, k n S/(P B))``, ``k = P largest/S``, and the copy between host and GPU; where variables lie on
    GPUs, the fullest server copies beside its network what reaches it.
    """
    table, size = _constants()["grpc"], _size(payload)
    found = many_streams(placement.cluster, placement.servers)
    network = replace(found, bytes_per_s=min(found.bytes_per_s, table["process_bytes_per_s"]))
    host = effective(placement.cluster.server.pcie, "pcie")
    sharing = min(placement.gpus_per_server, placement.cluster.server.pcie_gpus_sharing or 1)
    ps = max(1, placement.ps)
    imbalance = max(1.0, ps * max(part_bytes for part_bytes, _ in payload) / size)
    from_host, to_servers = _crossing(placement, placement.gpus_per_server)
    on_gpu = placement.ps_on is PsOn.GPU

    def seconds(size_bytes: float) -> float:
        over_network = push_or_pull_s(
            size_bytes, from_host, to_servers, ps, imbalance,
            network.bytes_per_s, network.bytes_per_s, network.latency_s,
        )  # fmt: skip
        copied_s = imbalance * to_servers / ps * size_bytes / host.bytes_per_s if on_gpu else 0.0
        return max(over_network, copied_s) + sharing * size_bytes / host.bytes_per_s

    beside = ", k n S/(P PCIe)" if on_gpu else ""
    formula = _formula(f"max(g S/B, k n S/(P B){beside}) with k = {imbalance:.2g}, and a copy over PCIe", placement)
    return _pull_and_push(payload, placement, network, seconds, formula, table)


def _tf_local(payload: Payload, placement: Placement) -> tuple[Exchange, ...]:
    """Summed in the server, variables on the workers: a host copy and ``(m-1)/m S/B``; the pull is exposed.

    Variables on the GPUs are dealt out among them: each GPU copies the ``(g-1)/g`` that others hold.
    """
    table = _constants()["tf-local"]
    network = many_streams(placement.cluster, placement.servers)
    server = placement.cluster.server
    uplinks = -(-server.gpus // (server.pcie_gpus_sharing or 1))
    per_server = placement.gpus_per_server
    copies, form = max(1.0, per_server / uplinks), "g/uplinks S/B of PCIe"
    if placement.ps_on is PsOn.GPU:
        copies, form = (per_server - 1) / per_server, "(g-1)/g S/B of PCIe"
    away = (placement.servers - 1) / placement.servers
    host_bytes_per_s: float = min(table["host_bytes_per_s"], server.pcie.bytes_per_s)

    def seconds(size_bytes: float) -> float:
        return copies * size_bytes / host_bytes_per_s + away * size_bytes / network.bytes_per_s

    link = network if placement.servers > 1 else effective(server.pcie, "pcie")
    return _pull_and_push(payload, placement, link, seconds, f"{form} + (m-1)/m S/B", table)


def _mxnet(payload: Payload, placement: Placement) -> tuple[Exchange, ...]:
    """Summed on one GPU of each server, ``(g-1) S/B`` into it and out of it, then ``2 (m-1)/m S/B`` across."""
    table, size = _constants()["mxnet"], _size(payload)
    network = many_streams(placement.cluster, placement.servers)
    server = placement.cluster.server
    rate: float = min(table["device_bytes_per_s"], server.pcie.bytes_per_s)
    others, away = placement.gpus_per_server - 1, (placement.servers - 1) / placement.servers

    def seconds(size_bytes: float) -> float:
        return 2 * others * size_bytes / rate + 2 * away * size_bytes / network.bytes_per_s

    link = network if placement.servers > 1 else effective(server.pcie, "pcie")
    return (
        Exchange(
            "push and pull", link.name, "kvstore", payload, 2 * size, seconds, True, table["interference"],
            "2 (g-1) S/B of PCIe + 2 (m-1)/m S/B", _source(table, link, placement), spread=link.spread,
        ),
    )  # fmt: skip


def _pull_and_push(
    payload: Payload, placement: Placement, link: EffectiveLink, seconds: Callable[[float], float], formula: str,
    table: Mapping[str, Any],
) -> tuple[Exchange, ...]:  # fmt: skip
    """A pull that the forward pass waits for, and a push beside the backward pass."""
    rest = (table["interference"], formula, _source(table, link, placement))
    kind = _kind(placement)
    size = _size(payload) * _crossing(placement, 1)[0]
    return (
        Exchange("pull weights", link.name, kind, payload, size, seconds, False, *rest, spread=link.spread),
        Exchange("push gradients", link.name, kind, payload, size, seconds, True, *rest, spread=link.spread),
    )


def _crossing(placement: Placement, senders_per_host: int) -> tuple[float, float]:
    """Copies of ``S`` that leave one worker server, and that reach the fullest server's network in ``1/P`` parts.

    Co-located processes are dealt out evenly: the emptiest host keeps ``floor(P/m)`` parts of
    its workers' gradients, the fullest takes in ``ceil(P/m)`` from everyone else's. Asynchronous workers are
    out of step: one of them has the servers to itself, and ``serving_s`` says how many they can serve.
    """
    hosts, ps = placement.servers, max(1, placement.ps)
    at_once = 1 if placement.asynchronous else hosts
    if not placement.ps_colocated:
        return float(senders_per_host), float(senders_per_host * at_once)
    fewest, most = ps // hosts, -(-ps // hosts)
    others = min(hosts - 1, at_once)
    return senders_per_host * (1 - fewest / ps), float(senders_per_host * others * most)


def _formula(apart: str, placement: Placement) -> str:
    return f"as on hosts apart, own part stays: {apart}" if placement.ps_colocated else apart


def _size(payload: Payload) -> float:
    return sum(part_bytes for part_bytes, _ in payload)


def _kind(placement: Placement) -> str:
    if not placement.ps:
        return "local sum"
    where = ", co-located" if placement.ps_colocated else ""
    return f"{placement.ps} parameter server{'s' if placement.ps > 1 else ''}{where}"


def _source(table: Mapping[str, Any], link: EffectiveLink, placement: Placement) -> str:
    hosts = "; co-located: derived, not measured" if placement.ps_colocated else ""
    return f"{table['source']}{hosts}; {link.name}: {link.source}"


_STYLES: Mapping[PsStyle, Callable[[Payload, Placement], tuple[Exchange, ...]]] = {
    PsStyle.BYTEPS: _byteps,
    PsStyle.GRPC: _grpc,
    PsStyle.TF_LOCAL: _tf_local,
    PsStyle.MXNET: _mxnet,
}
