"""Closed forms of collective communication: seconds from bytes, ranks, rate and latency.

``size_bytes`` is the payload of one rank, ``ranks`` the group, ``bytes_per_s`` what a
rank moves in one direction, ``latency_s`` one hop. Source: Thakur, Rabenseifner and
Gropp, Optimization of Collective Communication Operations in MPICH (2005); Patarasuk
and Yuan, Bandwidth Optimal All-reduce Algorithms (2009).
"""

from __future__ import annotations

from math import ceil, log2

RING_HOPS_LIMIT = 64
"""From this group size on, libraries use trees: latency grows with log2 (NCCL 2.4 and newer; assumed limit)."""


def hops(ranks: int) -> int:
    """Latency steps of one pass over ``ranks``: a ring for small groups, a tree for large."""
    if ranks <= 1:
        return 0
    return ranks - 1 if ranks < RING_HOPS_LIMIT else ceil(log2(ranks))


def all_reduce_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """``2 (n-1)/n S/B + 2 (n-1) a``: a reduce-scatter and an all-gather."""
    if ranks <= 1 or size_bytes <= 0:
        return 0.0
    return 2 * (ranks - 1) / ranks * size_bytes / bytes_per_s + 2 * hops(ranks) * latency_s


def all_to_all_s(size_bytes: float, ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """``(n-1)/n S/B + (n-1) a``: every rank keeps its own share."""
    if ranks <= 1 or size_bytes <= 0:
        return 0.0
    return (ranks - 1) / ranks * size_bytes / bytes_per_s + hops(ranks) * latency_s


def push_or_pull_s(
    size_bytes: float, workers_on_node: int, workers: int, servers: int, imbalance: float,
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


def all_reduce_sent_bytes(size_bytes: float, ranks: int) -> float:
    """Bytes one rank sends (and as many it receives)."""
    return 0.0 if ranks <= 1 else 2 * (ranks - 1) / ranks * size_bytes
