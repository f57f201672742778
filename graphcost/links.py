"""Links: what joins the parts of a machine, and at which rate in one direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from graphcost.errors import UnknownNameError, UsageError
from graphcost.registry import did_you_mean


class LinkKind(StrEnum):
    """What a link is made of; the kind decides what its nominal rate gives in practice."""

    NVLINK = "nvlink"  # wired GPU to GPU: hybrid cube mesh, bridge
    NVSWITCH = "nvswitch"  # every GPU at full rate to every other
    XGMI = "xgmi"  # AMD Infinity Fabric, full mesh
    GAUDI_ETHERNET = "gaudi-ethernet"  # Gaudi's RoCE ports used inside the server
    NEURONLINK = "neuronlink"
    ICI = "ici"  # TPU torus
    HCCS = "hccs"  # Ascend
    PCIE = "pcie"
    C2C = "c2c"  # NVLink-C2C between Grace and its GPUs
    INFINIBAND = "infiniband"
    ROCE = "roce"
    EFA = "efa"  # AWS, kernel bypass
    TCPX = "tcpx"  # GCP GPUDirect-TCPX and -TCPXO: TCP whose payload lands in GPU memory
    TCP = "tcp"  # kernel sockets on one's own machines
    TCP_CLOUD = "tcp-cloud"  # kernel sockets between virtual machines, limits per flow

    @property
    def is_network(self) -> bool:
        """Whether it joins servers (a NIC's kind)."""
        return self in NETWORK_KINDS

    @property
    def bypasses_kernel(self) -> bool:
        """Whether the NIC moves payload without the host's socket stack."""
        return self.is_network and self not in {LinkKind.TCP, LinkKind.TCP_CLOUD}


NETWORK_KINDS = frozenset(
    {LinkKind.INFINIBAND, LinkKind.ROCE, LinkKind.EFA, LinkKind.TCPX, LinkKind.TCP, LinkKind.TCP_CLOUD}
)

NETWORK_LATENCY_S: Mapping[LinkKind, float] = {
    LinkKind.INFINIBAND: 5e-6,
    LinkKind.ROCE: 5e-6,
    LinkKind.EFA: 15e-6,
    LinkKind.TCPX: 25e-6,
    LinkKind.TCP: 25e-6,
    LinkKind.TCP_CLOUD: 40e-6,
}
"""assumed: one hop of a collective between servers; used where the user changes the network's kind."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link, seen from one end.

    ``bytes_per_s``: per direction, nominal; whose (a GPU's, a NIC's) says the field
    that holds it. ``latency_s``: one hop. ``in_network_reduce``: the switch adds
    (NVLink SHARP). ``pair_bytes_per_s``: what two GPUs of a mesh have between them,
    or one wire of a cube mesh; None where every pair gets the whole rate.
    """

    kind: LinkKind
    bytes_per_s: float
    latency_s: float
    in_network_reduce: bool = False
    pair_bytes_per_s: float | None = None

    def at_rate(self, bytes_per_s: float) -> Link:
        """The same link at another rate; the wires of a mesh scale along."""
        rate = positive(bytes_per_s, f"the rate of {self.kind}")
        pair = self.pair_bytes_per_s
        scaled_pair = None if pair is None else pair * rate / self.bytes_per_s
        return replace(self, bytes_per_s=rate, pair_bytes_per_s=scaled_pair)

    def as_network(self, kind: LinkKind | str) -> Link:
        """The same rate over another kind of network, with that kind's assumed latency.

        Raises :class:`UnknownNameError` for a kind that joins no servers.
        """
        known = sorted(network.value for network in NETWORK_KINDS)
        if kind not in known:
            raise UnknownNameError(
                f"no network kind named {str(kind)!r}{did_you_mean(str(kind), known)} ({', '.join(known)})"
            )
        chosen = LinkKind(kind)
        return self if chosen == self.kind else Link(chosen, self.bytes_per_s, NETWORK_LATENCY_S[chosen])


def positive(value: float, what: str) -> float:
    """``value`` if it is more than zero and finite, else :class:`UsageError` about ``what``."""
    if not 0 < value < float("inf"):
        raise UsageError(f"{what} is {value:g}, but it must be more than zero and finite")
    return value
