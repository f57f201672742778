"""nn.DataParallel: seconds of the host per parameter tensor that is copied, and the rate of copies over PCIe.

``python -m benchmarks.fit data_parallel --tables DIR [--write]``: torchvision's networks at 12
images a GPU on two to four GPUs (``ryujaehun_torchvision.csv``). A step is the longer of GPU and
messages, as predicted, and of the host: launches of all GPUs one after another and the copying.
How much slower a machine's host is comes from its rows of one GPU (``host.toml``). Every machine is
predicted without its own rows, with that factor and without.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._problem import scores
from benchmarks.fit.host import FILE as HOST_FILE
from benchmarks.fit.host import TABLE, launches
from graphcost.engine.constants import host_constants
from graphcost.validation import Outcome, Predictor, read_table

FILE = Path(__file__).parents[2] / "graphcost" / "network" / "data_parallel.toml"
SOURCE = f"torchvision on two to four GPUs ({TABLE})"
LEFT_OUT = ("TITANXP", 4)
"""Four TITAN Xp take three times as long as three, in inference too; the table does not say why."""

LISTED_TWICE = "2080ti(2)"
"""The table has the same times under two names of one machine; the second would tell the held-out first."""


@dataclass(frozen=True)
class Step:
    """A measured step. ``launching_s``: both passes of one GPU, at the mean machine. ``tensors``: parameters.

    ``sent_s``: messages; ``copies_s``: those over PCIe, at its nominal rate instead.
    """

    machine: str
    gpus: int
    gpu_s: float
    sent_s: float
    copies_s: float
    launching_s: float
    tensors: int
    seconds: float


def step_of(one: Outcome) -> Step | None:
    """None for a row without a prediction."""
    if one.step is None or one.job is None or not one.row.step_s:
        return None
    host, ops = host_constants(), [timed.op for timed in one.step.ops]
    sent = [message for message in one.step.messages if message.kind in ("broadcast", "reduce")]
    over_pcie = [message.bytes for message in sent if message.link == "pcie"]
    launching_s = sum(
        host[f"{phase}_op_s"] * launches([op for op in ops if str(op.phase) == phase])
        for phase in ("forward", "backward")
    )
    return Step(
        machine=one.row.source.partition(":")[2].partition("_")[0],
        gpus=one.row.gpus or 1,
        gpu_s=one.step.compute_s + one.step.memory_s,
        sent_s=sum(message.time_s for message in sent if message.link != "pcie"),
        copies_s=sum(over_pcie) / one.job.cluster.server.pcie.bytes_per_s,
        launching_s=launching_s,
        tensors=sum(str(op.phase) == "update" for op in ops),
        seconds=one.row.step_s,
    )


def steps(folder: Path) -> list[Step]:
    """Training rows of several GPUs."""
    rows = [row for row in read_table(folder / TABLE) if (row.gpus or 1) > 1 and row.phase == "train"]
    found = [step for one in Predictor().predict(rows) if (step := step_of(one)) is not None]
    return [step for step in found if (step.machine, step.gpus) != LEFT_OUT and step.machine != LISTED_TWICE]


def predicted_s(rows: Sequence[Step], theta: np.ndarray, machines: dict[str, float]) -> np.ndarray:
    """Seconds of every row; ``theta``: log seconds per tensor, log share of PCIe's nominal rate.

    ``machines``: how much slower than the mean a host is, 1 where it is not known.
    """
    tensor_s, share = np.exp(theta)
    return np.array(
        [
            max(
                row.gpu_s + row.sent_s + row.copies_s / share,
                machines.get(row.machine, 1.0) * (row.gpus * row.launching_s + tensor_s * row.tensors),
            )
            for row in rows
        ]
    )


def solve(rows: Sequence[Step], machines: dict[str, float]) -> np.ndarray:
    """Both constants, as ``predicted_s`` takes them."""
    measured = np.array([row.seconds for row in rows])

    def residuals(theta: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(predicted_s(rows, theta, machines) / measured))

    return np.asarray(least_squares(residuals, np.log([1e-4, 0.5]), loss="soft_l1", f_scale=0.2).x)


def main(argv: Sequence[str]) -> int:
    """Fit, print the figures, and with ``--write`` put the constants into ``data_parallel.toml``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit data_parallel", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    parser.add_argument("--write", action="store_true", help=f"write the constants into {FILE.name}")
    options = parser.parse_args(argv)
    machines: dict[str, float] = tomllib.loads(HOST_FILE.read_text("utf-8"))["fit"]["machines"]
    rows = steps(options.tables)
    tensor_s, share = np.exp(solve(rows, machines))
    print(f"{tensor_s * 1e6:.0f} us a parameter tensor, {share:.2f} of PCIe's nominal rate, {len(rows)} rows")
    measured = np.array([row.seconds for row in rows])
    with_factor, without = np.zeros(len(rows)), np.zeros(len(rows))
    for name in sorted({row.machine for row in rows}):
        mine = np.array([row.machine == name for row in rows])
        own = [row for row in rows if row.machine == name]
        apart = solve([row for row in rows if row.machine != name], machines)
        with_factor[mine], without[mine] = predicted_s(own, apart, machines), predicted_s(own, apart, {})
        print(f"  {name}, held out: {scores(with_factor[mine], measured[mine]).text()}")
    held, blind = scores(with_factor, measured), scores(without, measured)
    print(f"machines held out: {held.text()}\n  without their factor: {blind.text()}")
    if options.write:
        FILE.write_text(
            "# torch's nn.DataParallel: one process copies the module to every GPU at each step.\n"
            "# Written by `python -m benchmarks.fit data_parallel --tables DIR --write`.\n\n"
            f'[host]\ntensor_s = {tensor_s:.2e}\nsource = "{SOURCE}"\n\n'
            f'[copy]\npcie_share = {share:.2f}\nsource = "{SOURCE}"\n\n'
            "[fit]  # machines held out, with the factor of their rows of one GPU and without\n"
            f'table = "{TABLE}"\nrows = {held.count}\nmedian = {held.median:.3f}\nmean = {held.mean:.3f}\n'
            f"bias = {held.bias:.3f}\nblind_median = {blind.median:.3f}\n",
            "utf-8",
        )
    return 0
