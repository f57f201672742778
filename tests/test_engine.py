"""Laws of collectives, links and overlap, and hand-worked values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.collectives import all_reduce_s, all_reduce_sent_bytes, all_to_all_s, push_or_pull_s
from graphcost.device_db import cluster_names, load_cluster
from graphcost.engine.timeline import Bucket, Overlap, buckets, exposure
from graphcost.network.links import across, effective, inside, ring

sizes = st.floats(min_value=1, max_value=1e12)
ranks = st.integers(2, 1024)


def test_all_reduce_by_hand() -> None:
    # 2 * 7/8 * 800 MB / 200 GB/s = 7 ms, and 2 * 7 hops of 10 us = 0.14 ms
    assert all_reduce_s(800e6, 8, 200e9, 10e-6) == pytest.approx(7e-3 + 0.14e-3)
    assert all_reduce_sent_bytes(800e6, 8) == 2 * 7 / 8 * 800e6
    # 7/8 * 800 MB / 200 GB/s = 3.5 ms, and 7 hops
    assert all_to_all_s(800e6, 8, 200e9, 10e-6) == pytest.approx(3.5e-3 + 70e-6)


def test_parameter_server_is_bound_by_its_fuller_side() -> None:
    # one worker per node, 4 workers, 4 even servers: both sides 100 MB / 1 GB/s
    assert push_or_pull_s(100e6, 1, 4, 4, 1.0, 1e9, 1e9, 0.0) == pytest.approx(0.1)
    # one server for four workers: 400 MB into it
    assert push_or_pull_s(100e6, 1, 4, 1, 1.0, 1e9, 1e9, 0.0) == pytest.approx(0.4)
    # eight workers behind one NIC: 800 MB out of the node
    assert push_or_pull_s(100e6, 8, 8, 8, 1.0, 1e9, 10e9, 0.0) == pytest.approx(0.8)


@given(sizes, ranks)
def test_one_rank_sends_nothing_and_more_bytes_take_longer(size: float, n: int) -> None:
    assert all_reduce_s(size, 1, 1e9, 1e-6) == 0 == all_to_all_s(size, 1, 1e9, 1e-6)
    assert all_reduce_s(2 * size, n, 1e9, 1e-6) > all_reduce_s(size, n, 1e9, 1e-6)
    assert all_reduce_s(size, n, 2e9, 1e-6) < all_reduce_s(size, n, 1e9, 1e-6)


@given(st.lists(st.tuples(st.floats(1, 1e8), st.floats(0, 1)), max_size=60))
def test_buckets_keep_every_byte_and_order(gradients: list[tuple[float, float]]) -> None:
    ordered = sorted(gradients, key=lambda gradient: gradient[1])
    made = buckets(ordered)
    assert sum(bucket.size_bytes for bucket in made) == pytest.approx(sum(size for size, _ in ordered))
    assert [bucket.ready_s for bucket in made] == sorted(bucket.ready_s for bucket in made)


def test_overlap_by_hand() -> None:
    sent = (Bucket(1e9, 0.1), Bucket(1e9, 0.2), Bucket(1e9, 1.0))

    def a_gigabyte_takes_a_quarter_second(size: float) -> float:
        return size / 4e9

    # sent at 0.1 and at 0.35, done at 0.6; the last is ready at 1.0 and ends at 1.25
    found = exposure(sent, a_gigabyte_takes_a_quarter_second, 1.0, Overlap.BUCKETED, 0.0)
    assert (found.total_s, found.exposed_s) == pytest.approx((0.75, 0.25))
    # a tenth of the hidden half second costs too
    slowed = exposure(sent, a_gigabyte_takes_a_quarter_second, 1.0, Overlap.BUCKETED, 0.1)
    assert slowed.exposed_s == pytest.approx(0.25 + 0.1 * 0.5)
    assert exposure(sent, a_gigabyte_takes_a_quarter_second, 1.0, Overlap.NONE, 0.1).exposed_s == pytest.approx(0.75)
    assert exposure(sent, a_gigabyte_takes_a_quarter_second, 1.0, Overlap.IDEAL, 0.1).exposed_s == 0


@given(
    st.lists(st.tuples(st.floats(1, 1e9), st.floats(0, 1)), min_size=1, max_size=30),
    st.floats(1e8, 1e12),
    st.floats(0, 0.5),
)
def test_exposed_time_lies_between_nothing_and_all(
    gradients: list[tuple[float, float]], rate: float, interference: float
) -> None:
    sent = buckets(sorted(gradients, key=lambda gradient: gradient[1]))
    found = exposure(sent, lambda size: size / rate, 1.0, Overlap.BUCKETED, interference)
    assert 0 <= found.exposed_s <= found.total_s * (1 + 1e-9)


@pytest.mark.parametrize("name", cluster_names())
def test_effective_links_are_below_nominal(name: str) -> None:
    cluster = load_cluster(name)
    server = cluster.server
    assert 0 < effective(server.nic, "nic").bytes_per_s <= server.nic.bytes_per_s
    for n in range(2, server.gpus + 1):
        nominal = (server.scale_up or server.pcie).bytes_per_s
        assert 0 < inside(cluster, n).bytes_per_s <= nominal
    assert across(cluster).bytes_per_s <= server.node_network_bytes_per_s
    two = ring(cluster, 2 * server.gpus, 2)
    assert two.bytes_per_s <= max(across(cluster).bytes_per_s, inside(cluster, server.gpus).bytes_per_s)
