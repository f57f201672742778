"""Shared-cache traffic against exact simulations: the bound holds for every policy, the estimate is near LRU."""

from __future__ import annotations

import itertools
import statistics
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.shared_cache import Block, cases, lru_misses, min_misses, trace_of
from graphcost.engine.shared_cache import Scan, attention_scan, gemm_scan, lower_bound_bytes, shared_traffic


def least_misses(trace: list[Block], capacity: int) -> int:
    """The optimum by trying every choice of what to keep; for short traces."""

    @cache
    def least(time: int, kept: frozenset[Block]) -> int:
        if time == len(trace):
            return 0
        if trace[time] in kept:
            return least(time + 1, kept)
        held = kept | {trace[time]}
        sizes = [held] if len(held) <= capacity else [held - {gone} for gone in held]
        return 1 + min(least(time + 1, one) for one in sizes)

    return least(0, frozenset())


@given(st.lists(st.tuples(st.integers(0, 4), st.just(0)), max_size=14), st.integers(1, 4))
def test_the_simulated_min_is_the_optimum(trace: list[Block], capacity: int) -> None:
    assert min_misses(trace, capacity) == least_misses(trace, capacity)


def test_policies_by_hand() -> None:
    """a b c a b c through two blocks: LRU always drops what comes next, MIN keeps a and one more."""
    trace = [(name, 0) for name in (1, 2, 3, 1, 2, 3)]
    assert lru_misses(trace, 2) == 6
    assert min_misses(trace, 2) == 4  # 1, 2, 3 (not kept), 1 and 2 hit, 3
    assert lru_misses(trace, 3) == min_misses(trace, 3) == 3


tile = st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True).map(tuple)
scans = st.builds(
    lambda tiles, steps: Scan(tuple(tiles), steps, dict.fromkeys(range(6), 1.0)),
    st.lists(tile, min_size=1, max_size=12),
    st.integers(1, 6),
)
settings_of = {"concurrent": st.integers(1, 6), "drift_steps": st.integers(0, 14)}


@settings(max_examples=300)
@given(scan=scans, capacity=st.integers(0, 24), seed=st.integers(0, 999), **settings_of)
def test_no_policy_beats_the_bound(scan: Scan, capacity: int, seed: int, concurrent: int, drift_steps: int) -> None:
    trace = trace_of(scan, concurrent=concurrent, drift_steps=drift_steps, seed=seed)
    assert len(trace) == scan.read_bytes
    found = shared_traffic(scan, concurrent=concurrent, cache_bytes=capacity, drift_steps=drift_steps)
    optimum = min_misses(trace, capacity)
    assert found.compulsory_bytes <= found.bound_bytes <= optimum <= lru_misses(trace, capacity) <= found.read_bytes
    assert found.bound_bytes <= found.estimate_bytes <= found.read_bytes


@given(scan=scans, sizes=st.tuples(st.floats(0, 40), st.floats(0, 40)).map(sorted), **settings_of)
def test_a_larger_cache_fetches_no_more(scan: Scan, sizes, concurrent: int, drift_steps: int) -> None:
    small, large = (
        shared_traffic(scan, concurrent=concurrent, cache_bytes=size, drift_steps=drift_steps) for size in sizes
    )
    assert large.bound_bytes <= small.bound_bytes
    assert large.estimate_bytes <= small.estimate_bytes * (1 + 1e-9)


@given(scan=scans, capacity=st.integers(0, 24), concurrent=st.integers(1, 6), drift=st.integers(0, 12))
def test_more_drift_allows_more_so_the_bound_falls(scan: Scan, capacity: int, concurrent: int, drift: int) -> None:
    strict, loose = (
        lower_bound_bytes(scan, concurrent=concurrent, cache_bytes=capacity, drift_steps=one)
        for one in (drift, drift + 1)
    )
    assert loose <= strict


@given(scan=scans, **settings_of)
def test_a_cache_for_everything_fetches_every_block_once(scan: Scan, concurrent: int, drift_steps: int) -> None:
    found = shared_traffic(scan, concurrent=concurrent, cache_bytes=1e9, drift_steps=drift_steps)
    assert found.bound_bytes == found.compulsory_bytes == pytest.approx(found.estimate_bytes)
    nothing = shared_traffic(scan, concurrent=concurrent, cache_bytes=0, drift_steps=drift_steps)
    assert nothing.estimate_bytes == pytest.approx(scan.read_bytes) and nothing.miss_share == pytest.approx(1)


def test_drift_costs_where_the_cache_is_small() -> None:
    scan = attention_scan(1, 4, 16, 32, 1, query_tile=1, key_tile=1, element_bytes=1)
    by_drift = [
        shared_traffic(scan, concurrent=16, cache_bytes=8 * 2, drift_steps=drift).estimate_bytes
        for drift in (0, 4, 8, 16)
    ]
    assert by_drift == sorted(by_drift) and by_drift[-1] > 2 * by_drift[0]


def test_the_estimate_is_near_lru() -> None:
    """The tolerances of the table that ``python -m benchmarks.shared_cache`` prints."""
    found = list(cases(seeds=range(3)))
    errors = sorted(abs(one.error) for one in found)
    assert len(found) > 200
    assert statistics.median(errors) < 0.01 and errors[int(0.9 * len(errors))] < 0.10 and errors[-1] < 0.35
    pressed = sorted(abs(one.error) for one in found if one.pressed)
    assert len(pressed) > 40 and statistics.median(pressed) < 0.08 and pressed[int(0.9 * len(pressed))] < 0.20
    assert all(one.bound <= one.belady <= one.lru for one in found)
    assert statistics.median(one.bound / one.belady for one in found) > 0.9


def test_a_gemm_by_hand() -> None:
    """[300, 128] @ [128, 200] in tiles of 128 x 128 x 32: 3 x 2 tiles, 4 steps, edges of 44 rows and 72 columns."""
    scan = gemm_scan(300, 200, 128, tile_m=128, tile_n=128, tile_k=32, element_bytes=2)
    assert scan.tiles == ((0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)) and scan.steps == 4
    assert [scan.block_bytes[i] for i in range(5)] == [
        128 * 32 * 2,
        128 * 32 * 2,
        44 * 32 * 2,
        128 * 32 * 2,
        72 * 32 * 2,
    ]
    assert scan.read_bytes == (2 * 300 + 3 * 200) * 128 * 2  # A once a column of tiles, B once a row
    grouped = gemm_scan(300, 200, 128, tile_m=128, tile_n=128, tile_k=32, element_bytes=2, group_rows=2)
    assert grouped.tiles == ((0, 3), (1, 3), (0, 4), (1, 4), (2, 3), (2, 4))


def test_attention_by_hand() -> None:
    """Two sequences, four heads on two pairs of keys and values; 300 queries by 128, 200 keys by 64."""
    scan = attention_scan(2, 4, 300, 200, 64, query_tile=128, key_tile=64, element_bytes=2, kv_heads=2)
    assert len(scan.tiles) == 2 * 4 * 3 and scan.steps == 4
    assert [stream for (stream,) in scan.tiles] == [*[0] * 6, *[1] * 6, *[2] * 6, *[3] * 6]
    assert scan.read_bytes == 24 * 2 * 200 * 64 * 2  # keys and values of one head for each tile
    found = shared_traffic(scan, concurrent=24, cache_bytes=1e9, drift_steps=4)
    assert found.compulsory_bytes == 2 * 2 * 2 * 200 * 64 * 2
    assert "not validated on hardware" in found.evidence


@pytest.mark.parametrize("wrong", [{"concurrent": 0}, {"cache_bytes": -1.0}, {"drift_steps": -1}])
def test_what_cannot_be_is_refused(wrong) -> None:
    scan = gemm_scan(2, 2, 2, tile_m=1, tile_n=1, tile_k=1, element_bytes=1)
    with pytest.raises(ValueError, match="at least one tile"):
        shared_traffic(scan, **{"concurrent": 1, "cache_bytes": 1.0, "drift_steps": 0, **wrong})


def test_the_simulation_obeys_the_drift() -> None:
    scan = Scan(tuple((slot,) for slot in range(4)), 20, dict.fromkeys(range(4), 1.0))
    for drift, seed in itertools.product((0, 3), range(5)):
        progress = [0] * 4
        for stream, step in trace_of(scan, concurrent=4, drift_steps=drift, seed=seed):
            assert step == progress[stream] and step <= min(progress) + drift
            progress[stream] += 1
        assert progress == [20] * 4
