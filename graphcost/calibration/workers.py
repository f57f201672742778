"""What several processes of one machine measure together: collectives, and layers while all are busy.

Every worker is a process of torch.distributed with one thread (gloo) or one GPU (nccl).
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from graphcost.calibration.allocator import keep_memory
from graphcost.calibration.cases import cases
from graphcost.calibration.measuring import LEAST_S, Effort, Sample, measure, measure_updates, seconds_of
from graphcost.errors import UsageError

PAYLOAD_BYTES = tuple(1 << power for power in (10, 13, 16, 18, 19, 20, 21, 22, 23, 25, 26))
"""Sizes of the timed exchanges of gradients."""

TENSORS = 8
"""Parameters among which a payload is divided."""

SMALL_BYTES = 1 << 22
"""Payloads up to here are over in milliseconds: they are sent more often."""

OVERLAPPED_BYTES = 1 << 24
"""Payload of the all-reduce that runs beside products."""

LIMIT_S = 600
"""A worker that says nothing for so long has failed."""


@dataclass(frozen=True, slots=True)
class Together:
    """What ``ranks`` busy workers found; seconds are the slowest rank's.

    ``all_reduce_s``: payload bytes -> seconds that DDP adds where nothing hides it. ``interference``: the share of
    a hidden all-reduce by which it lengthens the work that hides it.
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
    """One worker: all measure the same at the same time; the first writes down the slowest of every timing."""
    import torch
    import torch.distributed as dist

    # A step waits for the slowest worker: the quartile of the slowest of n is this quantile of each of them.
    effort = replace(effort, share=effort.share ** (1 / ranks))
    keep_memory()
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
        times = {size: _exchange_s(size, device, wait) for size in PAYLOAD_BYTES}
        interference = _interference(device, wait)
        samples = (*measure(cases(), effort, device), *measure_updates(effort, device))
        found = torch.tensor([*times.values(), interference, *(one.seconds for one in samples)], dtype=torch.float64)
        slowest = found.to(device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        if rank == 0:
            sizes = len(times)
            *seconds, interference = slowest[: sizes + 1].tolist()
            slow = slowest[sizes + 1 :].tolist()
            torch.save(
                Together(
                    ranks, backend, dict(zip(times, seconds, strict=True)), interference,
                    tuple(replace(one, seconds=taken) for one, taken in zip(samples, slow, strict=True)),
                ),
                Path(folder) / "found.pt",
            )  # fmt: skip
        dist.barrier()
    finally:
        dist.destroy_process_group()


def _exchange_s(size_bytes: int, device: str, wait: Callable[[], Any]) -> float:
    """What torch's DistributedDataParallel adds to a backward pass that gives ``size_bytes`` of gradients at once.

    With the copies into its buckets and back and the hooks of ``TENSORS`` parameters, which a bare all-reduce has
    not. Every rank runs the same number of rounds; the lower quartiles are compared.
    """
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    class Flat(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            each = size_bytes // 4 // TENSORS
            self.parts = nn.ParameterList(nn.Parameter(torch.zeros(each, device=device)) for _ in range(TENSORS))

        def forward(self) -> Any:
            return torch.stack([part.sum() for part in self.parts]).sum()

    alone, spread = Flat(), DistributedDataParallel(Flat())
    taken: dict[Any, list[float]] = {alone: [], spread: []}
    for _ in range(10 if size_bytes > SMALL_BYTES else 40):
        for module, seconds in taken.items():
            module.zero_grad(set_to_none=True)
            dist.barrier()
            wait()
            begun = time.perf_counter()
            module().backward()
            wait()
            seconds.append(time.perf_counter() - begun)
    without, with_s = (quantiles(seconds[3:], n=4)[0] for seconds in taken.values())
    return max(LEAST_S, with_s - without)


def _all_reduce_s(size_bytes: int, device: str, wait: Callable[[], Any], rounds: int = 12) -> float:
    """Seconds of one bare all-reduce, the lower quartile; every rank runs the same number of rounds."""
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
    return quantiles(taken[2:], n=4)[0]


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
