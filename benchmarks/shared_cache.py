"""Traffic through a shared cache: bound and estimate beside exact simulations of LRU and Belady's MIN.

``python -m benchmarks.shared_cache`` prints the table; ``simulate`` is what the tests hold the
engine against. Nothing here has been compared with hardware.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphcost.engine.shared_cache import EVIDENCE, Scan, attention_scan, gemm_scan, shared_traffic

Block = tuple[int, int]
"""Stream and number."""


def trace_of(scan: Scan, *, concurrent: int, drift_steps: int, seed: int) -> list[Block]:
    """Reads in time: at each turn one running tile, chosen at random among those not too far ahead, does a step."""
    chance = random.Random(seed)
    queues = [[*range(slot, len(scan.tiles), concurrent)] for slot in range(min(concurrent, len(scan.tiles)))]
    progress = [0] * len(queues)
    length = [len(queue) * scan.steps for queue in queues]
    found: list[Block] = []
    running = [slot for slot in range(len(queues)) if length[slot]]
    while running:
        least = min(progress[slot] for slot in running)
        slot = chance.choice([slot for slot in running if progress[slot] <= least + drift_steps])
        tile, step = divmod(progress[slot], scan.steps)
        found += [(stream, step) for stream in scan.tiles[queues[slot][tile]]]
        progress[slot] += 1
        if progress[slot] == length[slot]:
            running.remove(slot)
    return found


def lru_misses(trace: Sequence[Block], capacity: int) -> int:
    """Misses of a cache of ``capacity`` equal blocks that drops what was not used for longest."""
    kept: OrderedDict[Block, None] = OrderedDict()
    misses = 0
    for block in trace:
        if block in kept:
            kept.move_to_end(block)
            continue
        misses += 1
        kept[block] = None
        if len(kept) > capacity:
            kept.popitem(last=False)
    return misses


def min_misses(trace: Sequence[Block], capacity: int) -> int:
    """Misses of Belady's MIN, which drops what is used again latest, the block just read included."""
    uses: dict[Block, deque[int]] = defaultdict(deque)
    for time, block in enumerate(trace):
        uses[block].append(time)
    kept: set[Block] = set()
    latest: list[tuple[int, Block]] = []
    misses = 0
    for block in trace:
        uses[block].popleft()
        if block not in kept:
            misses += 1
            kept.add(block)
        heapq.heappush(latest, (-(uses[block][0] if uses[block] else len(trace)), block))
        while len(kept) > capacity:
            following, oldest = heapq.heappop(latest)
            # An entry from before the last use of a block that was used since is stale.
            if oldest in kept and -following == (uses[oldest][0] if uses[oldest] else len(trace)):
                kept.remove(oldest)
    return misses


@dataclass(frozen=True, slots=True)
class Simulated:
    """Blocks fetched under both policies, the mean over seeds."""

    lru: float
    belady: float


def simulate(scan: Scan, *, concurrent: int, capacity: int, drift_steps: int, seeds: Sequence[int]) -> Simulated:
    """Both policies on the same traces. Blocks must be of one size, for which MIN is the optimum."""
    if len(set(scan.block_bytes.values())) != 1:
        raise ValueError("blocks of several sizes: MIN is no optimum for them")
    traces = [trace_of(scan, concurrent=concurrent, drift_steps=drift_steps, seed=seed) for seed in seeds]
    return Simulated(
        statistics.fmean(lru_misses(trace, capacity) for trace in traces),
        statistics.fmean(min_misses(trace, capacity) for trace in traces),
    )


SCANS = {
    "gemm 8x8 tiles": gemm_scan(8, 8, 16, tile_m=1, tile_n=1, tile_k=1, element_bytes=1),
    "gemm 8x8 in groups of 4": gemm_scan(8, 8, 16, tile_m=1, tile_n=1, tile_k=1, element_bytes=1, group_rows=4),
    "gemm 4x16 tiles": gemm_scan(4, 16, 32, tile_m=1, tile_n=1, tile_k=1, element_bytes=1),
    "attention 4 heads": attention_scan(1, 4, 16, 32, 1, query_tile=1, key_tile=1, element_bytes=1),
    "attention 8 heads of 2": attention_scan(1, 8, 8, 32, 1, query_tile=1, key_tile=1, element_bytes=1, kv_heads=2),
}
"""Small scans with blocks of one size."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table, in blocks."""

    name: str
    concurrent: int
    drift_steps: int
    capacity: int
    read: float
    once_a_wave: float
    bound: float
    belady: float
    lru: float
    estimate: float

    @property
    def error(self) -> float:
        """Of the estimate against LRU."""
        return self.estimate / self.lru - 1

    @property
    def pressed(self) -> bool:
        """Whether the cache loses blocks that tiles of one wave share: drift and size matter."""
        return self.lru > 1.01 * self.once_a_wave


def cases(seeds: Sequence[int] = range(5)) -> Iterator[Case]:
    """Scans by tiles at once, drift and size of the cache."""
    for name, scan in SCANS.items():
        block = next(iter(scan.block_bytes.values()))
        for concurrent in (4, 16):
            for drift in (0, 2, 8):
                for capacity in (4, 8, 16, 32, 64, 128, 512):
                    found = shared_traffic(
                        scan, concurrent=concurrent, cache_bytes=capacity * block, drift_steps=drift
                    )
                    exact = simulate(scan, concurrent=concurrent, capacity=capacity, drift_steps=drift, seeds=seeds)
                    once = sum(len(set(wave)) for wave in scan.waves(concurrent)) * scan.steps
                    yield Case(
                        name, concurrent, drift, capacity, found.read_bytes / block, once, found.bound_bytes / block,
                        exact.belady, exact.lru, found.estimate_bytes / block,
                    )  # fmt: skip


def main() -> None:
    """Print every case and the errors of the estimate."""
    print(f"blocks fetched; {EVIDENCE}")
    print(
        f"{'scan':<24}{'tiles':>6}{'drift':>6}{'cache':>6}{'reads':>7}{'bound':>7}{'MIN':>8}{'LRU':>8}{'estimate':>9}{'error':>8}"
    )
    found = list(cases())
    for one in found:
        print(
            f"{one.name:<24}{one.concurrent:>6}{one.drift_steps:>6}{one.capacity:>6}{one.read:>7.0f}{one.bound:>7.0f}"
            f"{one.belady:>8.0f}{one.lru:>8.0f}{one.estimate:>9.0f}{one.error:>+8.1%}"
        )
    for what, some in (("all", found), ("cache under pressure", [one for one in found if one.pressed])):
        errors = sorted(abs(one.error) for one in some)
        print(
            f"{what}: {len(some)} cases, estimate against LRU off by {statistics.median(errors):.1%} (median), "
            f"{errors[int(0.9 * len(errors))]:.1%} (90 % under it), {errors[-1]:.1%} (worst)"
        )
    print(f"bound at {statistics.median(one.bound / one.belady for one in found):.0%} of MIN (median)")


if __name__ == "__main__":
    main()
