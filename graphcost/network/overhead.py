"""What several GPUs cost beyond the wire: loops that drift, hooks, copies into buckets, a slowest GPU."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from math import log, log2, sqrt
from typing import Any


@cache
def overhead_constants() -> dict[str, Any]:
    """``overhead.toml``."""
    return tomllib.loads(files("graphcost.network").joinpath("overhead.toml").read_text("utf-8"))


def multi_gpu_overhead_s(single_gpu_s: float, gpus_per_server: int, servers: int) -> float:
    """``T1 (0.02 log2 g + 0.01 log2 m)``: not hidden, also where nothing is sent for long.

    >>> round(multi_gpu_overhead_s(1.0, 8, 4), 3)
    0.08
    """
    table = overhead_constants()
    inside = table["per_doubling_in_server"] * log2(gpus_per_server)
    return float(single_gpu_s * (inside + table["per_doubling_of_servers"] * log2(servers)))


def straggler_s(single_gpu_s: float, gpus: int, spread: float) -> float:
    """How much later the slowest of ``gpus`` is: ``s T1 sqrt(2 ln n)`` for step times that spread normally by ``s``.

    Source: expected maximum of n normal variables, upper bound. Nothing is assumed about ``s``.

    >>> straggler_s(1.0, 1, 0.05)
    0.0
    """
    return single_gpu_s * spread * sqrt(2 * log(gpus)) if gpus > 1 else 0.0
