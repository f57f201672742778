"""Measured against predicted on this machine's CPU: eight small models, alone and as two DDP processes.

``python -m benchmarks.cpu_check [--quick]``: calibrates (``graphcost calibrate --workers 2``),
trains every model with SGD and momentum, one thread a process, and predicts the step from
the calibrated files. Exit 1 where the median error is over 15 % alone or 20 % with two workers.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import graphcost
from benchmarks._measure import machine
from benchmarks.small_models import SMALL_MODELS
from graphcost.cli.main import main as graphcost_command
from graphcost.report.tables import table_text

LIMITS = {1: 0.15, 2: 0.20}


def step_s(name: str, *, parallel: bool, seconds: float) -> float:
    """Seconds of a training step (forward, backward, update): the lower quartile, as calibration takes it."""
    torch.manual_seed(0)
    model, inputs = SMALL_MODELS[name]()
    model.train()
    trained = DistributedDataParallel(model) if parallel else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=False)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        out = trained(*inputs)
        out.backward(torch.ones_like(out))
        optimizer.step()

    for _ in range(4):
        step()
    begun = time.perf_counter()
    step()
    rounds = max(8, int(seconds / max(1e-4, time.perf_counter() - begun)))
    if parallel:  # every rank takes as many steps
        agreed = torch.tensor([rounds])
        dist.all_reduce(agreed, dist.ReduceOp.MIN)
        rounds = int(agreed)
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        step()
        taken.append(time.perf_counter() - begun)
    return quantiles(taken, n=4)[0]


def _worker(rank: int, port: int, seconds: float, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    found = {name: step_s(name, parallel=True, seconds=seconds) for name in SMALL_MODELS}
    if rank == 0:
        torch.save(found, Path(folder) / "steps.pt")
    dist.barrier()
    dist.destroy_process_group()


def measured_by_two(seconds: float) -> dict[str, float]:
    """Step times of two DDP processes over gloo."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        torch.multiprocessing.spawn(_worker, (port, seconds, folder), nprocs=2)
        return dict(torch.load(Path(folder) / "steps.pt"))


def predicted(name: str, files: Path, workers: int) -> graphcost.Analysis:
    """The step from the calibrated files alone."""
    model, inputs = SMALL_MODELS[name]()
    where = {"cluster": str(files / "here-x2.toml")} if workers == 2 else {"device": str(files / "here.toml")}
    return graphcost.analyze(
        model.train(), inputs, gpus=workers, optimizer="momentum", optimizer_kernels="for-loop", **where
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter timings, no limits")
    parser.add_argument("--files", type=Path, help="a folder with here.toml and here-x2.toml, calibrated before")
    chosen = parser.parse_args()
    print("$ python -m benchmarks.cpu_check" + (" --quick" if chosen.quick else ""))
    print(machine())
    seconds = 0.3 if chosen.quick else 1.5
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        files = chosen.files or Path(folder)
        if chosen.files is None:
            options = ["--workers", "2", "--device", "cpu", "--name", "here", "--output", str(files)]
            if graphcost_command(["calibrate", *options, *(["--quick"] if chosen.quick else [])]):
                return 1
        together = measured_by_two(seconds)
        rows, errors = [], {1: [], 2: []}  # type: tuple[list[list[str]], dict[int, list[float]]]
        for name in SMALL_MODELS:
            alone = step_s(name, parallel=False, seconds=seconds)
            said = {workers: predicted(name, files, workers) for workers in (1, 2)}
            cells = [name]
            for workers, real in ((1, alone), (2, together[name])):
                error = said[workers].step.step_s / real - 1
                errors[workers].append(abs(error))
                cells += [f"{1e3 * real:.2f}", f"{1e3 * said[workers].step.step_s:.2f}", f"{100 * error:+.0f} %"]
            cells += [
                f"{100 * (1 - alone / together[name]):.0f} %",
                f"{100 * (1 - said[1].step.step_s / said[2].step.step_s):.0f} %",
            ]
            rows.append(cells)
    heads = ["model", "alone ms", "predicted", "error", "two ms", "predicted", "error", "lost", "predicted"]
    print(table_text(heads, rows, right=tuple(range(1, 9)), width=110))
    code = 0
    for workers, limit in LIMITS.items():
        reached = median(errors[workers])
        print(f"{workers} process(es): median error {100 * reached:.1f} %, limit {100 * limit:.0f} %")
        code |= int(reached > limit and not chosen.quick)
    return code


if __name__ == "__main__":
    sys.exit(main())
