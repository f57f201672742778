"""Measured against predicted on this machine's CPU: eight small models, alone and as two DDP processes.

``python -m benchmarks.cpu_check [--quick]``: trains every model with SGD and momentum, one thread a process, and
predicts the step from calibrated files. The machine is calibrated (as ``graphcost calibrate --workers 2`` does) and
the models are trained in turns, three times over, so that a machine whose speed changes by the minute is the same on
both sides; each side takes the median of its turns. No prediction uses a step's own time. All processes keep their
memory (``graphcost.calibration.allocator``); ``--default-malloc`` trains the models without that.
Exit 1 where the median error is over 15 % alone or 20 % with two workers.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import graphcost
from benchmarks._measure import machine
from benchmarks.small_models import SMALL_MODELS
from graphcost.calibration.allocator import keep_memory
from graphcost.calibration.files import toml_text
from graphcost.calibration.measuring import Effort
from graphcost.calibration.passes import one_pass, tables
from graphcost.report.tables import table_text

LIMITS = {1: 0.15, 2: 0.20}
TURNS = 3


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


def _worker(rank: int, workers: int, port: int, seconds: float, kept: bool, folder: str) -> None:
    torch.set_num_threads(1)
    if kept:
        keep_memory()
    if workers > 1:
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=workers)
    found = {name: step_s(name, parallel=workers > 1, seconds=seconds) for name in SMALL_MODELS}
    if rank == 0:
        torch.save(found, Path(folder) / "steps.pt")
    if workers > 1:
        dist.barrier()
        dist.destroy_process_group()


def measured(workers: int, seconds: float, *, kept: bool) -> dict[str, float]:
    """Step times of a fresh process, or of several under DDP over gloo."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        torch.multiprocessing.spawn(_worker, (workers, port, seconds, kept, folder), nprocs=workers)
        return dict(torch.load(Path(folder) / "steps.pt"))


def predicted(name: str, files: Path, workers: int) -> graphcost.Analysis:
    """The step from the calibrated files alone."""
    model, inputs = SMALL_MODELS[name]()
    where = {"cluster": str(files / "here-x2.toml")} if workers == 2 else {"device": str(files / "here.toml")}
    return graphcost.analyze(
        model.train(), inputs, gpus=workers, optimizer="momentum", optimizer_kernels="for-loop", **where
    )


def turns(count: int, seconds: float, files: Path, *, kept: bool) -> dict[int, dict[str, float]]:
    """Train and calibrate in turns; writes the files, returns measured seconds by workers and model."""
    steps: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    passes = []
    for _ in range(count):
        for workers, found in steps.items():
            found.append(measured(workers, seconds, kept=kept))
        passes.append(one_pass(Effort(), "cpu", 2))
    device, cluster = tables(passes, "cpu")
    (files / "here.toml").write_text(toml_text(device), "utf-8")
    (files / "here-x2.toml").write_text(toml_text(cluster or {}), "utf-8")
    return {workers: _medians(found) for workers, found in steps.items()}


def _medians(turns: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: median(one[name] for one in turns) for name in SMALL_MODELS}


def cpu_seconds() -> tuple[float, float]:
    """Processor time that the whole machine spent, stolen time included, and this process with its children."""
    fields = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()
    user, nice, system, _, _, irq, soft_irq, stolen = (int(one) for one in fields[1:9])
    own = os.times()
    spent = (user + nice + system + irq + soft_irq + stolen) / os.sysconf("SC_CLK_TCK")
    return spent, own.user + own.system + own.children_user + own.children_system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one turn, no limits")
    parser.add_argument("--files", type=Path, help="keep here.toml and here-x2.toml in this folder")
    parser.add_argument("--default-malloc", action="store_true", help="train as the allocator is by default")
    chosen = parser.parse_args()
    print("$ python -m benchmarks.cpu_check" + "".join(f" {one}" for one in sys.argv[1:]))
    print(machine())
    torch.set_num_threads(1)
    begun, (spent, own) = time.monotonic(), cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        files = chosen.files or Path(folder)
        found = turns(1 if chosen.quick else TURNS, 0.4, files, kept=not chosen.default_malloc)
        rows, errors = [], {1: [], 2: []}  # type: tuple[list[list[str]], dict[int, list[float]]]
        for name in SMALL_MODELS:
            said = {workers: predicted(name, files, workers).step.step_s for workers in (1, 2)}
            cells = [name]
            for workers, steps in found.items():
                error = said[workers] / steps[name] - 1
                errors[workers].append(abs(error))
                cells += [f"{1e3 * steps[name]:.2f}", f"{1e3 * said[workers]:.2f}", f"{100 * error:+.0f} %"]
            cells += [
                f"{100 * (1 - one[0] / one[1]):.0f} %"
                for one in ((found[1][name], found[2][name]), (said[1], said[2]))
            ]
            rows.append(cells)
    heads = ["model", "alone ms", "predicted", "error", "two ms", "predicted", "error", "lost", "predicted"]
    print(table_text(heads, rows, right=tuple(range(1, 9)), width=110))
    code = 0
    for workers, limit in LIMITS.items():
        reached = median(errors[workers])
        print(f"{workers} process(es): median error {100 * reached:.1f} %, limit {100 * limit:.0f} %")
        code |= int(reached > limit and not chosen.quick)
    took_s, (spent_after, own_after) = time.monotonic() - begun, cpu_seconds()
    others = max(0.0, (spent_after - spent) - (own_after - own)) / (took_s * (os.cpu_count() or 1))
    print(f"{took_s:.0f} s in all; other processes took {100 * others:.0f} % of the machine meanwhile")
    return code


if __name__ == "__main__":
    sys.exit(main())
