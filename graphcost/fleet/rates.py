"""What a table of jobs is evaluated on: PAI's flat share of nominal rates, or effective rates of the database.

``calibrated`` keeps the study's equations (parts added, media one after another), and
takes every rate from the network and device models. A table of jobs has no operators,
message sizes or order of gradients, so nothing that depends on those can be known; the
notes say so, and are part of every output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphcost.engine.constants import constants_of
from graphcost.engine.paper import PaperRates, paper_rates, utilisation
from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, KINDS, PS, JobKind
from graphcost.hardware import Cluster, Device, peak_dtype
from graphcost.network.links import across, effective, inside, many_streams
from graphcost.predict import Profile
from graphcost.units import format_bandwidth, format_flops_per_s, format_share

COMPUTE_ROW, MEMORY_ROW = "linear", "pointwise"
"""Classes that stand for all compute-bound and all memory-bound operators: assumed, a job has no operator mix."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """A cluster under a profile: one set of rates for each kind of job, and what is assumed about them."""

    cluster: Cluster
    profile: Profile
    precision: str
    notes: tuple[str, ...]
    _rates: Mapping[str, PaperRates]
    _keeping: frozenset[str]

    def of(self, kind: JobKind) -> PaperRates:
        """What a job of this kind gets of each resource."""
        return self._rates[kind.id]

    def keeps_weights(self, kind: JobKind) -> bool:
        """Whether a job of one cNode moves none, although larger ones of its kind do: 1wNg."""
        return kind.id in self._keeping


def _hardware(
    cluster: Cluster, profile: Profile, precision: str, notes: tuple[str, ...], of: Mapping[str, Cluster]
) -> Hardware:
    media = {kind.id: kind.media(cluster) for kind in KINDS}
    keeping = frozenset(kind.id for kind in KINDS if media[kind.id] and not kind.media(cluster, alone=True))
    rates = {kind.id: paper_rates(of[kind.id], media[kind.id], precision) for kind in KINDS}
    return Hardware(cluster, profile, precision, notes, rates, keeping)


def hardware_of(cluster: Cluster, profile: Profile = Profile.PAPER, precision: str = "fp32") -> Hardware:
    """``cluster`` under ``profile``; raises ``UsageError`` where the device has no such precision."""
    cluster.device.peak(precision)
    if profile is Profile.PAPER:
        notes = (f"every resource at {format_share(utilisation(cluster))} of nominal, parts added, nothing overlaps",)
        return _hardware(cluster, profile, precision, notes, {kind.id: cluster for kind in KINDS})
    return _calibrated(cluster, precision)


def _calibrated(cluster: Cluster, precision: str) -> Hardware:
    compute, memory, constants = _class_shares(cluster.device, precision)
    server = cluster.server
    ring_inside, ring_across = inside(cluster, server.gpus), across(cluster)
    streams, host = many_streams(cluster), effective(server.pcie, "pcie")
    base = replace(
        cluster.with_overrides(
            pcie_bytes_per_s=host.bytes_per_s,
            mem_bytes_per_s=memory * cluster.device.mem_bytes_per_s,
            peak_flops_per_s=compute * cluster.device.peak(precision),
        ),
        utilisation=1.0,
    )

    def with_links(network_bytes_per_s: float, nvlink_bytes_per_s: float) -> Cluster:
        scale_up = None if server.scale_up is None else nvlink_bytes_per_s
        return base.with_overrides(network_bytes_per_s=network_bytes_per_s, nvlink_bytes_per_s=scale_up)

    # S_w of a ring counts bytes sent and received, which cross a link at the same time; rates are per direction.
    ring = with_links(2 * ring_across.bytes_per_s, 2 * ring_inside.bytes_per_s)
    other = with_links(ring_across.bytes_per_s, ring_inside.bytes_per_s)
    own = {ALLREDUCE_LOCAL.id: ring, ALLREDUCE_CLUSTER.id: ring,
           PS.id: with_links(streams.bytes_per_s, ring_inside.bytes_per_s)}  # fmt: skip
    fallback = ", which no file describes" if constants[1] else ""
    notes = (
        f"known: effective rates of links: network {format_bandwidth(streams.bytes_per_s)} to parameter servers, "
        f"{format_bandwidth(ring_across.bytes_per_s)} in a ring ({ring_across.source}); "
        f"{ring_inside.name} {format_bandwidth(ring_inside.bytes_per_s)} ({ring_inside.source}); PCIe "
        f"{format_bandwidth(host.bytes_per_s)} ({host.source})",
        f"known: efficiencies of {constants[0]}{fallback}: {format_flops_per_s(base.device.peak(precision))} "
        f"({precision}), memory {format_bandwidth(base.device.mem_bytes_per_s)}",
        f"assumed: all FLOPs run as {COMPUTE_ROW!r}, all memory-bound bytes as {MEMORY_ROW!r}: a job table has no "
        "operator mix",
        "assumed: parts added and media one after another, as in the study: a job table does not say when gradients "
        "are ready, so nothing hides",
        "not known: launches and host time, latencies and message sizes, reading and decoding of input, stragglers",
    )
    of = {kind.id: own.get(kind.id, other) for kind in KINDS}
    return _hardware(cluster, Profile.CALIBRATED, precision, notes, of)


def _class_shares(device: Device, precision: str) -> tuple[float, float, tuple[str, bool]]:
    constants = constants_of(device)
    row = constants.row(COMPUTE_ROW)
    dtype = peak_dtype(precision)
    on_vector_units = dtype in device.vector_dtypes or (dtype == "tf32" and dtype not in device.peak_flops_per_s)
    compute = row.fp32 if on_vector_units else row.compute
    return compute, constants.row(MEMORY_ROW).memory, (constants.generation, constants.is_fallback)
