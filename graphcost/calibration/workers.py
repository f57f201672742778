"""What several processes of one machine measure together: collectives, and layers while all are busy.

Every worker is a process of torch.distributed with one thread (gloo) or one GPU (nccl).
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from graphcost.calibration.cases import cases
from graphcost.calibration.measuring import Effort, Sample, measure, measure_updates, seconds_of
from graphcost.errors import UsageError

PAYLOAD_BYTES = (1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 21, 1 << 23, 1 << 25, 1 << 26)
"""Sizes of the timed all-reduces."""

OVERLAPPED_BYTES = 1 << 24
"""Payload of the all-reduce that runs beside products."""

LIMIT_S = 600
"""A worker that says nothing for so long has failed."""


@dataclass(frozen=True, slots=True)
class Together:
    """What ``ranks`` busy workers found; seconds are the slowest rank's.

    ``all_reduce_s``: payload bytes -> seconds. ``interference``: the share of a hidden
    all-reduce by which it lengthens the work that hides it.
    """

    ranks: int
    backend: str
    all_reduce_s: dict[int, float]
    interference: float
    samples: tuple[Sample, ...]


def measure_together(ranks: int, effort: Effort, backend: str) -> Together:
    """Start ``ranks`` processes and let them measure; raises ``UsageError`` where one fails."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        try:
            torch.multiprocessing.spawn(_work, (ranks, _free_port(), backend, effort, folder), nprocs=ranks)
        except (torch.multiprocessing.ProcessRaisedException, torch.multiprocessing.ProcessExitedException) as error:
            last = str(error).strip().splitlines()[-1]
            raise UsageError(f"--workers {ranks}: a worker failed: {last}") from None
        found: Together = torch.load(Path(folder) / "found.pt", weights_only=False)  # written by our own worker
        return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _work(rank: int, ranks: int, port: int, backend: str, effort: Effort, folder: str) -> None:
    """One worker: all measure the same at the same time; the first writes down the slowest of all."""
    import torch
    import torch.distributed as dist

    device = "cpu"
    if backend == "nccl":
        torch.cuda.set_device(rank)
        device = f"cuda:{rank}"
    else:
        torch.set_num_threads(1)
    dist.init_process_group(
        backend, f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks, timeout=timedelta(seconds=LIMIT_S)
    )
    try:
        wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
        times = {size: _all_reduce_s(size, device, wait) for size in PAYLOAD_BYTES}
        interference = _interference(device, wait)
        samples = (*measure(cases(), effort, device), *measure_updates(effort, device))
        slowest = torch.tensor([*times.values(), interference], device=device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        if rank == 0:
            *seconds, interference = slowest.tolist()
            found = Together(ranks, backend, dict(zip(times, seconds, strict=True)), interference, samples)
            torch.save(found, Path(folder) / "found.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()


def _all_reduce_s(size_bytes: int, device: str, wait: Callable[[], Any], rounds: int = 12) -> float:
    """Median seconds of one all-reduce; every rank runs the same number of rounds."""
    import time

    import torch
    import torch.distributed as dist

    payload = torch.zeros(size_bytes // 4, device=device)
    taken = []
    for _ in range(rounds):
        dist.barrier()
        wait()
        begun = time.perf_counter()
        dist.all_reduce(payload)
        wait()
        taken.append(time.perf_counter() - begun)
    return median(taken[2:])


def _interference(device: str, wait: Callable[[], Any], rounds: int = 7) -> float:
    """How much longer products take with an all-reduce behind them, over the all-reduce itself; 0 to 1."""
    import time

    import torch
    import torch.distributed as dist

    payload = torch.zeros(OVERLAPPED_BYTES // 4, device=device)
    matrix = torch.randn(512, 512, device=device)
    alone = _all_reduce_s(OVERLAPPED_BYTES, device, wait)
    product_s = seconds_of(lambda: matrix @ matrix, Effort(), wait)
    count = max(1, round(2 * alone / product_s))

    def products() -> None:
        for _ in range(count):
            _ = matrix @ matrix
        wait()

    plain: list[float] = []
    beside: list[float] = []
    for hidden in (False, True) * rounds:
        dist.barrier()
        begun = time.perf_counter()
        sent = dist.all_reduce(payload, async_op=True) if hidden else None
        products()
        if sent is not None:
            sent.wait()
        wait()
        (beside if hidden else plain).append(time.perf_counter() - begun)
    longer = median(beside) - max(median(plain), alone)
    return float(min(1.0, max(0.0, longer / alone)))
