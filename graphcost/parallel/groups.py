"""Where the groups of a mesh lie on servers, and what of the network each of them has.

Ranks are numbered with tensor parallelism innermost; data or pipeline parallelism comes next.
All groups of a kind talk at once, so those that leave a server share its network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphcost.errors import PlacementError
from graphcost.hardware import Cluster
from graphcost.network import Collective, Way, way
from graphcost.network.links import across, inside
from graphcost.parallel.mesh import Mesh

ORDERS = (("tp", "dp", "pp"), ("tp", "pp", "dp"))
"""Which groups are nearest; where both are the same, the first is said."""


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs that talk to each other. ``sharing``: groups of its kind that leave one server together."""

    ranks: int
    servers: int
    sharing: int
    cluster: Cluster

    @property
    def slower(self) -> float:
        """How many times as long a byte takes as for a group that has the server's network to itself."""
        if self.servers == 1 or self.sharing == 1:
            return 1.0
        network = across(self.cluster, self.servers).bytes_per_s
        per_server = -(-self.ranks // self.servers)
        within = inside(self.cluster, per_server).bytes_per_s if per_server > 1 else float("inf")
        return max(1.0, min(within, network) / min(within, network / self.sharing))

    def way(self, collective: Collective) -> Way:
        """How the group does ``collective``, alone on its servers."""
        return way(self.cluster, self.ranks, self.servers, collective)

    def seconds(self, collective: Collective) -> Callable[[float], float]:
        """Time by payload beside the other groups of its kind."""
        found, slower = self.way(collective), self.slower
        return lambda size_bytes: found.seconds(slower * size_bytes)

    def send_s(self, size_bytes: float) -> float:
        """One GPU to the next: latency and bytes over its share of the slower link."""
        if self.ranks == 1 or size_bytes <= 0:
            return 0.0
        link = across(self.cluster, self.servers) if self.servers > 1 else inside(self.cluster, 2)
        return link.latency_s + size_bytes * self.sharing / link.bytes_per_s


def groups_of(mesh: Mesh, cluster: Cluster, gpus_per_server: int, order: tuple[str, ...]) -> dict[str, Group]:
    """The group of every dimension, and ``ep`` inside ``dp``; ``order``: innermost first."""
    sizes = {"tp": mesh.tp, "pp": mesh.pp, "dp": mesh.dp}
    found, stride = {}, 1
    for name in order:
        found[name] = _group(sizes[name], stride, cluster, gpus_per_server)
        if name == "dp":
            found["ep"] = _group(mesh.experts, stride, cluster, gpus_per_server)
            found["expert dp"] = _group(mesh.dp // mesh.experts, stride * mesh.experts, cluster, gpus_per_server)
        stride *= sizes[name]
    return found


def _group(ranks: int, stride: int, cluster: Cluster, gpus_per_server: int) -> Group:
    """Every ``stride``-th GPU, ``ranks`` of them."""
    together = min(ranks, max(1, gpus_per_server // stride))
    servers = -(-ranks // together)
    return Group(ranks, servers, max(1, gpus_per_server // together) if servers > 1 else 1, cluster)


def require_place(mesh: Mesh, cluster: Cluster, gpus_per_server: int, servers: int) -> None:
    """Raise ``PlacementError`` for tensor parallel groups that would lie across the borders of servers."""
    if servers == 1:
        return
    smaller, larger = sorted((mesh.tp, gpus_per_server))
    if larger % smaller:
        raise PlacementError(
            f"--arch {mesh.name}: groups of tp={mesh.tp} do not fill servers of {cluster.id} "
            f"({gpus_per_server} GPUs each); tp must divide {gpus_per_server} or be a multiple of it"
        )
