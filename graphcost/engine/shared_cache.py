"""Bytes that a cache shared by concurrent tiles has to fetch: a lower bound, and an estimate with drift.

Tiles of a product read the same panels, query tiles of attention the same blocks of keys and
values. Each tile walks its streams block by block; tiles that run at once drift apart, so that
a block read by one may be gone when the next one comes. Drift is bounded by how far a pipeline
may run ahead (``drift_steps``).

Not validated on hardware: held against exact simulations of LRU and of Belady's MIN
(``python -m benchmarks.shared_cache``). No prediction of a step uses it.

Source: the bound cuts the trace into windows, each of which misses what it reads beyond what the
cache can hold when it starts (the argument of Hong and Kung, I/O complexity, 1981). The estimate
is the characteristic-time approximation of LRU (Denning, The working set model, 1968; Che, Tung
and Wang, Hierarchical web caching, 2002), with readers spread evenly over the drift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

EVIDENCE = "not validated on hardware; held against simulations of LRU and Belady's MIN"


@dataclass(frozen=True, slots=True)
class Scan:
    """``tiles`` in order of dispatch: each names the streams whose block k it reads in its step k.

    ``steps``: blocks of a stream, and steps of a tile. ``block_bytes``: stream -> bytes of one block.
    """

    tiles: tuple[tuple[int, ...], ...]
    steps: int
    block_bytes: Mapping[int, float]

    @property
    def read_bytes(self) -> float:
        """All reads: what a cache that keeps nothing fetches."""
        return self.steps * sum(self.block_bytes[stream] for tile in self.tiles for stream in tile)

    def waves(self, concurrent: int) -> tuple[tuple[int, ...], ...]:
        """Streams of each round of ``concurrent`` tiles, one entry a reader."""
        rounds = range(0, len(self.tiles), concurrent)
        return tuple(tuple(s for tile in self.tiles[i : i + concurrent] for s in tile) for i in rounds)


@dataclass(frozen=True, slots=True)
class SharedTraffic:
    """Bytes fetched into the cache; ``bound <= estimate <= read``.

    ``bound_bytes``: no replacement policy fetches less. ``compulsory_bytes``: every block once.
    """

    read_bytes: float
    compulsory_bytes: float
    bound_bytes: float
    estimate_bytes: float
    evidence: str = EVIDENCE

    @property
    def miss_share(self) -> float:
        """Estimated share of the bytes read that miss; 0 for no reads."""
        return self.estimate_bytes / self.read_bytes if self.read_bytes else 0.0


def shared_traffic(scan: Scan, *, concurrent: int, cache_bytes: float, drift_steps: int) -> SharedTraffic:
    """What ``concurrent`` tiles at a time fetch through a cache of ``cache_bytes``.

    ``drift_steps``: how many steps the fastest running tile may be ahead of the slowest (0: lockstep).
    Raises ``ValueError`` for counts below one, and for sizes or drifts below zero.

    >>> scan = gemm_scan(256, 256, 256, tile_m=128, tile_n=128, tile_k=32, element_bytes=2)
    >>> found = shared_traffic(scan, concurrent=4, cache_bytes=1e6, drift_steps=4)
    >>> found.read_bytes, found.compulsory_bytes, found.estimate_bytes
    (524288.0, 262144.0, 262144.0)
    """
    if concurrent < 1 or cache_bytes < 0 or drift_steps < 0:
        raise ValueError(
            f"concurrent {concurrent}, cache_bytes {cache_bytes:g}, drift_steps {drift_steps}: "
            "at least one tile, and nothing negative"
        )
    compulsory = scan.steps * _bytes_of(scan, {stream for tile in scan.tiles for stream in tile})
    bound = lower_bound_bytes(scan, concurrent=concurrent, cache_bytes=cache_bytes, drift_steps=drift_steps)
    estimate = min(max(_estimate(scan, concurrent, cache_bytes, drift_steps), bound), scan.read_bytes)
    return SharedTraffic(scan.read_bytes, compulsory, bound, estimate)


def lower_bound_bytes(scan: Scan, *, concurrent: int, cache_bytes: float, drift_steps: int) -> float:
    """Bytes that every replacement policy fetches, whatever the order inside the drift.

    The trace is cut where the slowest tile has ended a group of waves. Between two cuts every
    tile of the group reads at least what lies ``drift_steps`` or more behind the first cut (the
    rest may have come early), and at most ``cache_bytes`` of it lie in the cache at that cut.
    Before the first cut it is empty. The best size of groups counts; one group of all waves is
    the compulsory traffic.
    """
    waves = [frozenset(wave) for wave in scan.waves(concurrent)]
    sizes = {min(2**power, len(waves)) for power in range(len(waves).bit_length() + 1)} if waves else set()
    best = 0.0
    for size in sizes:
        total = 0.0
        for start in range(0, len(waves), size):
            kept, skipped = (0.0, 0) if start == 0 else (cache_bytes, drift_steps)
            total += max(0.0, _surely_read_bytes(scan, waves[start : start + size], skipped) - kept)
        best = max(best, total)
    return best


def _surely_read_bytes(scan: Scan, group: Sequence[frozenset[int]], skipped_steps: int) -> float:
    """Distinct bytes of a group of waves without its first ``skipped_steps`` steps."""
    left_steps: dict[int, int] = {}
    for wave, streams in enumerate(group):
        skipped = min(max(skipped_steps - wave * scan.steps, 0), scan.steps)
        for stream in streams:  # blocks from a step on: the longest such run holds the others
            left_steps[stream] = max(left_steps.get(stream, 0), scan.steps - skipped)
    return sum(scan.block_bytes[stream] * steps for stream, steps in left_steps.items())


def _estimate(scan: Scan, concurrent: int, cache_bytes: float, drift_steps: int) -> float:
    """First readers of a block in a wave, unless an earlier wave left it, and later ones that come too late."""
    waves = [Counter(wave) for wave in scan.waves(concurrent)]
    span = drift_steps + 1.0  # readers of one step come one after the other
    total = 0.0
    for index, readers in enumerate(waves):
        reach = _reach_steps(scan, readers, span, cache_bytes)
        kept = _kept_shares(scan, waves, index, cache_bytes)
        for stream, count in readers.items():
            late = (count - 1) * max(0.0, 1 - reach / span) ** count
            total += scan.steps * scan.block_bytes[stream] * (1 - kept.get(stream, 0.0) + late)
    return total


def _reach_steps(scan: Scan, readers: Mapping[int, int], span: float, cache_bytes: float) -> float:
    """The longest gap between two readers after which a block is still there: LRU's characteristic time."""

    def touched(gap: float) -> float:
        return sum(scan.block_bytes[stream] * _covered(count, gap, span) for stream, count in readers.items())

    if touched(span) <= cache_bytes:
        return span
    low, high = 0.0, span
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if touched(middle) <= cache_bytes else (low, middle)
    return low


def _covered(readers: int, gap: float, span: float) -> float:
    """Blocks that ``readers`` spread evenly over ``span`` steps touch in ``gap`` steps, ``gap <= span``, in the mean.

    A block is untouched if no reader starts in the ``gap`` before it; at both ends of the span
    less than a gap lies before it.
    """
    inside = (span - gap) * (1 - (1 - gap / span) ** readers)
    ends = 2 * (gap - span / (readers + 1) * (1 - (1 - gap / span) ** (readers + 1)))
    return inside + ends


def _kept_shares(scan: Scan, waves: Sequence[Mapping[int, int]], index: int, cache_bytes: float) -> dict[int, float]:
    """Stream -> share of its blocks that the last wave with it has left in the cache, under LRU in lockstep.

    Between block k of both waves lie the rest of the earlier wave, all waves between, and the
    later wave up to k.
    """
    shares: dict[int, float] = {}
    between: set[int] = set()
    now = waves[index].keys()
    for before in range(index - 1, -1, -1):
        then = waves[before].keys()
        new = (now & then) - shares.keys()
        if new:
            whole = _bytes_of(scan, between | (now & then))
            start = whole + _bytes_of(scan, then - now - between)
            end = whole + _bytes_of(scan, now - then - between)
            shares |= dict.fromkeys(new, _share_below(start, end, cache_bytes / scan.steps))
        between |= then
        if _bytes_of(scan, between) * scan.steps > cache_bytes:
            break
    return shares


def _share_below(start: float, end: float, limit: float) -> float:
    """Share of the line from ``start`` to ``end`` that is not over ``limit``.

    >>> _share_below(0.0, 4.0, 1.0), _share_below(4.0, 0.0, 1.0), _share_below(2.0, 2.0, 2.0)
    (0.25, 0.25, 1.0)
    """
    low, high = min(start, end), max(start, end)
    return float(low <= limit) if low == high else min(1.0, max(0.0, (limit - low) / (high - low)))


def _bytes_of(scan: Scan, streams: Iterable[int]) -> float:
    """One block of each."""
    return sum(scan.block_bytes[stream] for stream in streams)


def gemm_scan(
    m: int, n: int, k: int, *, tile_m: int, tile_n: int, tile_k: int, element_bytes: float, group_rows: int = 1
) -> Scan:
    """Tiles of ``[m, k] @ [k, n]``: each reads a panel of rows and a panel of columns along k.

    ``group_rows``: so many rows of tiles are gone through column by column; 1: row by row.
    Panels at the edge are as narrow as they are.
    """
    rows, columns, steps = -(-m // tile_m), -(-n // tile_n), -(-k // tile_k)
    per_step = k * element_bytes / steps
    block_bytes = {i: min(tile_m, m - i * tile_m) * per_step for i in range(rows)}
    block_bytes |= {rows + j: min(tile_n, n - j * tile_n) * per_step for j in range(columns)}
    tiles = tuple(
        (i, rows + j)
        for first in range(0, rows, group_rows)
        for j in range(columns)
        for i in range(first, min(first + group_rows, rows))
    )
    return Scan(tiles, steps, block_bytes)


def attention_scan(
    batch: int,
    heads: int,
    query_length: int,
    key_length: int,
    head_dim: int,
    *,
    query_tile: int,
    key_tile: int,
    element_bytes: float,
    kv_heads: int | None = None,
) -> Scan:
    """Query tiles of attention: each walks all keys and values of its head (``kv_heads``: of its group of heads).

    Queries are read and results written once, by one tile; they are not in it.
    """
    kv_heads = kv_heads or heads
    steps = -(-key_length // key_tile)
    block = 2 * key_length * head_dim * element_bytes / steps
    tiles = tuple(
        (one * kv_heads + head * kv_heads // heads,)
        for one in range(batch)
        for head in range(heads)
        for _ in range(-(-query_length // query_tile))
    )
    return Scan(tiles, steps, dict.fromkeys(range(batch * kv_heads), block))
