"""Closed forms of collective communication: seconds from bytes, ranks, rate and latency.

``size_bytes`` is the payload of one rank (of the whole result for all-gather and
reduce-scatter, as nccl-tests counts it), ``ranks`` the group, ``bytes_per_s`` what a
rank moves in one direction, ``latency_s`` one hop. Source: Thakur, Rabenseifner and
Gropp, Optimization of Collective Communication Operations in MPICH (2005); Patarasuk
and Yuan, Bandwidth Optimal All-reduce Algorithms (2009).
"""

from __future__ import annotations

from math import ceil, log2


def moved_share(collective: str, ranks: int) -> float:
    """Bytes that a rank of a ring moves, over the payload: what nccl-tests calls the bus factor."""
    if ranks <= 1:
        return 0.0
    return {"all-reduce": 2 * (ranks - 1) / ranks, "broadcast": 1.0}.get(collective, (ranks - 1) / ranks)


def _nothing(size_bytes: float, ranks: int) -> bool:
    return ranks <= 1 or size_bytes <= 0


def all_reduce_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """Ring, ``2 (n-1)/n S/B + 2 (n-1) a``: a reduce-scatter and an all-gather."""
    if _nothing(size_bytes, ranks):
        return 0.0
    return 2 * (ranks - 1) / ranks * size_bytes / bytes_per_s + 2 * (ranks - 1) * latency_s


def reduce_scatter_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """Ring, ``(n-1)/n S/B + (n-1) a``: every rank ends with its share of the sum."""
    if _nothing(size_bytes, ranks):
        return 0.0
    return (ranks - 1) / ranks * size_bytes / bytes_per_s + (ranks - 1) * latency_s


def all_gather_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """Ring, ``(n-1)/n S/B + (n-1) a``: every rank ends with all shares of ``size_bytes``."""
    return reduce_scatter_s(size_bytes, ranks, bytes_per_s, latency_s)


def broadcast_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """Pipelined chain, ``S/B + (n-1) a``; a reduce is the same backwards."""
    return 0.0 if _nothing(size_bytes, ranks) else size_bytes / bytes_per_s + (ranks - 1) * latency_s


def all_to_all_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """``(n-1)/n S/B + (n-1) a``: every rank keeps its own share."""
    return reduce_scatter_s(size_bytes, ranks, bytes_per_s, latency_s)


def tree_all_reduce_s(
    size_bytes: float, nodes: int, ranks_per_node: int, bytes_per_s: float, inner_latency_s: float, latency_s: float
) -> float:
    """Double binary tree over nodes, a chain inside: ``2 S/B + 2 (g-1) a_in + 2 log2(m) a``.

    Source: Sanders, Speck and Traff, Two-tree Algorithms for Full Bandwidth Broadcast,
    Reduction and Scan (2009); NCCL 2.4.
    """
    if _nothing(size_bytes, nodes * ranks_per_node):
        return 0.0
    hops_s = 2 * (ranks_per_node - 1) * inner_latency_s + 2 * ceil(log2(nodes)) * latency_s
    return 2 * size_bytes / bytes_per_s + hops_s


def hierarchical_all_reduce_s(
    size_bytes: float, nodes: int, ranks_per_node: int, inner_bytes_per_s: float, node_bytes_per_s: float,
    inner_latency_s: float, latency_s: float,
) -> float:  # fmt: skip
    """Reduce-scatter inside, all-reduce of the shares across, all-gather inside.

    The ``g`` rings across share the node's network, so each has ``B_node / g`` for
    ``S / g``: ``2 (g-1)/g S/B_in + 2 (m-1)/m S/B_node``. Source: Horovod's and BytePS's
    hierarchical modes. No published table follows it under NCCL, which keeps flat rings.
    """
    inside = 2 * reduce_scatter_s(size_bytes, ranks_per_node, inner_bytes_per_s, inner_latency_s)
    return inside + all_reduce_s(size_bytes, nodes, node_bytes_per_s, latency_s)


def in_network_all_reduce_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """The switch adds: ``S/B`` towards it and back at once, and two hops (NVLink SHARP)."""
    return 0.0 if _nothing(size_bytes, ranks) else size_bytes / bytes_per_s + 2 * latency_s


def push_or_pull_s(
    size_bytes: float, workers_on_node: float, workers: float, servers: int, imbalance: float,
    worker_bytes_per_s: float, server_bytes_per_s: float, latency_s: float,
) -> float:  # fmt: skip
    """One direction of a parameter-server step: the slower of a worker's node and the fullest server.

    ``max(g S / B_worker, k W S / (P B_server)) + a``; ``imbalance`` k is the fullest
    server's share over the mean. Source: Li et al., Scaling Distributed Machine Learning
    with the Parameter Server (OSDI 2014), with shards as large as the largest variable.
    """
    if size_bytes <= 0:
        return 0.0
    at_worker = workers_on_node * size_bytes / worker_bytes_per_s
    at_server = imbalance * workers * size_bytes / (servers * server_bytes_per_s)
    return max(at_worker, at_server) + latency_s


def all_gather_rows_bytes(rows_bytes: float, ranks: int) -> float:
    """What a rank receives when every rank's touched rows go to all: ``(n-1) U``, so it grows with n."""
    return 0.0 if ranks <= 1 else (ranks - 1) * rows_bytes


def all_reduce_sent_bytes(size_bytes: float, ranks: int) -> float:
    """Bytes one rank sends (and as many it receives)."""
    return 0.0 if ranks <= 1 else 2 * (ranks - 1) / ranks * size_bytes
