"""How much of a device's matrix rate a product's sizes allow: tiles, waves, alignment.

A product is cut into tiles, and tiles run in waves over the compute units; what the last
tile of a row and the last wave lack is lost. Small products may be cut along K as well.
Source: NVIDIA, Matrix Multiplication Background User's Guide (tile and wave quantization).
"""

from __future__ import annotations

from functools import lru_cache

TILES: tuple[tuple[int, int, float], ...] = (
    (256, 128, 1.0), (128, 256, 1.0), (128, 128, 1.0), (128, 64, 0.9), (64, 128, 0.9), (64, 64, 0.75),
    (128, 32, 0.6), (32, 128, 0.6), (64, 32, 0.45), (32, 64, 0.45), (128, 8, 0.2), (8, 128, 0.2),
)  # fmt: skip
"""Rows, columns, and the share of the rate that a tile of this size sustains: smaller ones load more per
product. Shares: start values published with an analysis of the timm tables, RTX 3090."""

SPLITS = (1, 2, 4, 8, 16, 32)
SPLIT_SHARE = 0.95
"""What is left after adding the parts of a product cut along K (same source as the tiles)."""

LEAST_SPLIT_K = 64
FLOOR = 0.01
"""Products of a few rows by millions of K run on other kernels than tiles: no share falls below this."""

K_STEP = 8
"""Elements of K that a matrix instruction takes; fewer are padded. Kernels of products take more at once: the
``k_stage`` rules of the efficiency files."""


@lru_cache(maxsize=65536)
def tile_share(m: int, n: int, k: int, batch: int, units: int, k_step: int = K_STEP) -> float:
    """Share of the matrix rate, in (0, 1], for ``batch`` products ``[m, k] @ [k, n]`` on ``units`` compute units.

    >>> tile_share(128, 128, 1024, 1, 1), tile_share(1, 1, 16_000_000, 1, 100)
    (1.0, 0.01)
    """
    if min(m, n, k, batch) <= 0:
        return 1.0
    best = 0.0
    for rows, columns, share in TILES:
        tiles = -(-m // rows) * -(-n // columns)
        filled = m * n / (tiles * rows * columns) * share
        if filled <= best:
            continue
        for parts in SPLITS:
            if parts > 1 and k < parts * LEAST_SPLIT_K:
                break
            blocks = tiles * batch * parts
            waves = blocks / (-(-blocks // units) * units)
            best = max(best, filled * waves * (SPLIT_SHARE if parts > 1 else 1.0))
    padded = k / (-(-k // k_step) * k_step)
    return max(FLOOR, best * padded)


def is_aligned(*sizes: int) -> bool:
    """Whether the innermost sizes fill 16-byte loads of a half format (NVIDIA's alignment rule for matrix units)."""
    return all(size % 8 == 0 for size in sizes)
