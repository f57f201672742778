"""Laws that every closed form and every chosen way keeps, on generated sizes, groups and rates."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.collectives import (
    all_gather_rows_bytes,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    broadcast_s,
    hierarchical_all_reduce_s,
    in_network_all_reduce_s,
    moved_share,
    reduce_scatter_s,
    tree_all_reduce_s,
)
from graphcost.device_db import cluster_names, load_cluster
from graphcost.network import Collective, way

sizes = st.floats(min_value=1, max_value=1e11)
groups = st.integers(min_value=2, max_value=512)
rates = st.floats(min_value=1e8, max_value=1e12)
latencies = st.floats(min_value=0, max_value=1e-3)

Form = Callable[[float, int, float, float], float]
FORMS: dict[str, Form] = {
    "all-reduce": all_reduce_s,
    "reduce-scatter": reduce_scatter_s,
    "all-gather": all_gather_s,
    "broadcast": broadcast_s,
    "all-to-all": all_to_all_s,
    "in the switch": in_network_all_reduce_s,
    "tree": lambda size, n, rate, hop: tree_all_reduce_s(size, n, 1, rate, 0.0, hop),
    "hierarchical": lambda size, n, rate, hop: hierarchical_all_reduce_s(size, n, 4, rate, rate / 2, hop, hop),
}


@pytest.mark.parametrize("name", FORMS)
@given(size=sizes, n=groups, rate=rates, hop=latencies)
def test_more_bytes_ranks_or_latency_are_never_faster_and_more_bandwidth_never_slower(
    name: str, size: float, n: int, rate: float, hop: float
) -> None:
    form = FORMS[name]
    base = form(size, n, rate, hop)
    assert base > 0
    assert form(2 * size, n, rate, hop) > base
    assert form(size, n + 1, rate, hop) >= base
    assert form(size, n, rate, 2 * hop) >= base
    assert form(size, n, 2 * rate, hop) < base


@pytest.mark.parametrize("name", [name for name in FORMS if name != "hierarchical"])
def test_one_rank_or_no_bytes_take_no_time(name: str) -> None:
    assert FORMS[name](1e9, 1, 1e9, 1e-6) == 0 == FORMS[name](0, 8, 1e9, 1e-6)


def test_one_rank_of_a_hierarchy_takes_no_time() -> None:
    assert hierarchical_all_reduce_s(1e9, 1, 1, 1e9, 1e9, 1e-6, 1e-6) == 0


@given(size=sizes, n=groups, rate=rates, hop=latencies)
def test_a_ring_is_a_reduce_scatter_and_an_all_gather(size: float, n: int, rate: float, hop: float) -> None:
    both = reduce_scatter_s(size, n, rate, hop) + all_gather_s(size, n, rate, hop)
    assert all_reduce_s(size, n, rate, hop) == pytest.approx(both)


def test_hand_worked_values() -> None:
    """100 MB at 10 GB/s is 10 ms; a hop is 5 us."""
    assert all_reduce_s(100e6, 4, 10e9, 5e-6) == pytest.approx(15e-3 + 30e-6)  # 2 * 3/4 * 10 ms, 6 hops
    assert tree_all_reduce_s(100e6, 8, 4, 10e9, 1e-6, 5e-6) == pytest.approx(20e-3 + 6e-6 + 30e-6)
    assert broadcast_s(100e6, 4, 10e9, 5e-6) == pytest.approx(10e-3 + 15e-6)
    assert in_network_all_reduce_s(100e6, 8, 10e9, 5e-6) == pytest.approx(10e-3 + 10e-6)
    # 4 GPUs a server at 100 GB/s: 2 * 3/4 * 1 ms inside; 4 servers at 10 GB/s: 15 ms across.
    assert hierarchical_all_reduce_s(100e6, 4, 4, 100e9, 10e9, 0, 0) == pytest.approx(1.5e-3 + 15e-3)
    assert moved_share("all-reduce", 8) == 1.75 and moved_share("all-to-all", 8) == 0.875
    assert all_gather_rows_bytes(1e6, 8) == 7e6


@pytest.mark.parametrize("cluster", cluster_names())
@pytest.mark.parametrize("collective", Collective)
def test_every_cluster_does_every_collective(cluster: str, collective: Collective) -> None:
    found = load_cluster(cluster)
    for gpus, servers in ((2, 1), (found.server.gpus, 1), (2 * found.server.gpus, 2), (64, 64)):
        if gpus < 2 or gpus > servers * found.server.gpus:
            continue
        chosen = way(found, gpus, servers, collective)
        assert 0 < chosen.seconds(1e3) <= chosen.seconds(1e6) < chosen.seconds(1e9)
        assert chosen.best(25e6).formula and chosen.best(25e6).source
    assert way(found, 1, 1, collective).seconds(1e9) == 0


@pytest.mark.parametrize("cluster", ["dgx-a100", "dgx-h100", "sia-2080ti", "aws-g4dn.12xlarge", "hkbu-2080ti-ib"])
@given(size=sizes, factor=st.floats(min_value=1.0, max_value=16.0))
def test_more_bandwidth_is_never_slower_on_a_cluster(cluster: str, size: float, factor: float) -> None:
    base = load_cluster(cluster)
    server = base.server
    faster = base.with_overrides(
        network_bytes_per_s=factor * server.node_network_bytes_per_s,
        pcie_bytes_per_s=factor * server.pcie.bytes_per_s,
        nvlink_bytes_per_s=None if server.scale_up is None else factor * server.scale_up.bytes_per_s,
    )
    for gpus, servers in ((4, 1), (2 * server.gpus, 2)):
        assert way(faster, gpus, servers).seconds(size) <= way(base, gpus, servers).seconds(size) * (1 + 1e-9)


def test_a_hierarchy_is_a_candidate_only_when_asked() -> None:
    cluster = load_cluster("dgx1-v100").with_overrides(network_bytes_per_s=3e9)
    flat, asked = way(cluster, 16, 2), way(cluster, 16, 2, hierarchical=True)
    assert "hierarchical" not in {c.formula for c in flat.candidates}
    assert asked.best(1e9).formula == "hierarchical ring"
    assert asked.seconds(1e9) < flat.seconds(1e9)


def test_small_messages_over_many_servers_go_by_trees_and_large_ones_by_rings() -> None:
    chosen = way(load_cluster("dgx-a100"), 256, 32)
    assert chosen.best(1e4).formula.startswith("tree")
    assert chosen.best(4e9).formula.startswith("ring")


def test_a_switch_that_adds_is_chosen_where_no_curve_is() -> None:
    chosen = way(load_cluster("hgx-b200"), 6)  # measured with 2, 4 and 8
    assert chosen.best(1e9).formula == "in the switch (NVLS)"
    assert "in the switch (NVLS)" not in {c.formula for c in way(load_cluster("hgx-b200"), 3).candidates}


def test_all_to_all_shares_the_network_of_a_server() -> None:
    """8 streams of 8/16 of the payload through one NIC: 4 S/B, where a ring all-reduce pays 2 * 15/16."""
    cluster = load_cluster("dlperf-v100")
    exchanged = way(cluster, 16, 2, Collective.ALL_TO_ALL)
    assert exchanged.seconds(10e9) == pytest.approx(4 * 10e9 / exchanged.link.bytes_per_s, rel=0.01)
