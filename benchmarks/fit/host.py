"""What the host takes to launch an operator: eager steps of small batches, in which it is slower than the GPU.

``python -m benchmarks.fit host --tables DIR [--write]``: torchvision's networks at 12 images on
seven machines (``ryujaehun_torchvision.csv``: gradients zeroed, forward, loss, backward,
synchronized; no optimizer). A step is the longer of the GPU, as predicted, and of the host;
seconds per operator are fitted together with a factor for each machine. Every family of
networks is predicted without itself, and older rows of other machines (``cnn_single_gpu_legacy.csv``)
without any of their own.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._problem import Scores, scores
from graphcost.engine.constants import host_constants
from graphcost.recipe import Execution
from graphcost.training import PlannedOp
from graphcost.validation import Outcome, Predictor, read_table

FILE = Path(__file__).parents[2] / "graphcost" / "engine" / "host.toml"
TABLE = "ryujaehun_torchvision.csv"
OTHER = "cnn_single_gpu_legacy.csv"
START_S = 20e-6
"""assumed: where both constants begin; a loose prior."""
MACHINE_SPREAD = 0.5
ROW_SPREAD = 0.1


@dataclass(frozen=True)
class Step:
    """A measured step: predicted seconds of the GPU, and what the host launches forward and backward."""

    family: str
    machine: str
    gpu_s: float
    forward: int
    backward: int
    seconds: float


def launches(ops: Sequence[PlannedOp]) -> int:
    """Kernels without the casts of autocast: these networks were in the half format as a whole."""
    return sum(op.repeat * op.launches for op in ops if op.work is None or op.work.kind != "cast")


def step_of(one: Outcome) -> Step | None:
    """None for a row without a prediction, or a compiled one."""
    if one.step is None or one.job is None or not one.row.step_s or one.job.recipe.execution is Execution.COMPILED:
        return None
    ops = [timed.op for timed in one.step.ops]
    by_phase = {phase: [op for op in ops if str(op.phase) == phase] for phase in ("forward", "backward", "update")}
    trains = one.row.phase == "train"
    tensors = len(by_phase["update"]) if trains else 0  # zeroed, then added to: a kernel each
    return Step(
        family=re.match(r"(wide_|se)?([a-z]+)", one.row.model_id)[2],  # type: ignore[index]
        machine=one.row.source.partition(":")[2].partition("_1_gpus")[0],
        gpu_s=one.step.compute_s + one.step.memory_s,
        forward=launches(by_phase["forward"]) + tensors,
        backward=launches(by_phase["backward"]) + tensors if trains else 0,
        seconds=one.row.step_s,
    )


def steps(folder: Path, table: str) -> list[Step]:
    """The table's rows of one GPU."""
    rows = [row for row in read_table(folder / table) if (row.gpus or 1) == 1]
    return [step for one in Predictor().predict(rows) if (step := step_of(one)) is not None]


class Problem:
    """Rows as arrays. Unknowns: log seconds per forward and per backward operator, log factor of every machine."""

    def __init__(self, rows: Sequence[Step]) -> None:
        self.machines = sorted({row.machine for row in rows})
        self._at = np.array([self.machines.index(row.machine) for row in rows])
        self._gpu = np.array([row.gpu_s for row in rows])
        self._counts = np.array([[row.forward, row.backward] for row in rows], dtype=float)
        self.seconds = np.array([row.seconds for row in rows])
        self.families = np.array([row.family for row in rows])

    def host(self, theta: np.ndarray) -> np.ndarray:
        """Host seconds of every row."""
        return np.asarray(np.exp(theta[2:])[self._at] * (self._counts @ np.exp(theta[:2])))

    def predict(self, theta: np.ndarray) -> np.ndarray:
        """Seconds of every row's step."""
        return np.maximum(self._gpu, self.host(theta))

    def solve(self, chosen: np.ndarray) -> np.ndarray:
        """Constants from the rows ``chosen`` (a mask); the machines' factors have 1 as their mean."""
        start = np.concatenate([np.log([START_S, START_S]), np.zeros(len(self.machines))])
        spread = np.concatenate([[1.0, 1.0], np.full(len(self.machines), MACHINE_SPREAD)])

        def residuals(theta: np.ndarray) -> np.ndarray:
            errors = np.log(self.predict(theta) / self.seconds)[chosen] / ROW_SPREAD
            return np.concatenate([errors, (theta - start) / spread])

        theta = np.asarray(least_squares(residuals, start, loss="soft_l1").x)
        mean = theta[2:].mean()
        return np.concatenate([theta[:2] + mean, theta[2:] - mean])

    def held_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of every row without its family in the fit, and whether the host decides them."""
        seconds, bound = np.zeros(len(self.seconds)), np.zeros(len(self.seconds), bool)
        for family in sorted(set(self.families)):
            mine = self.families == family
            theta = self.solve(~mine)
            seconds[mine] = self.predict(theta)[mine]
            bound[mine] = self.host(theta)[mine] > self._gpu[mine]
        return seconds, bound


@dataclass(frozen=True)
class Fitted:
    """Seconds per operator, the machines' factors, and the figures of rows that the host decides."""

    forward_op_s: float
    backward_op_s: float
    machines: dict[str, float]
    held_out: Scores
    before: Scores
    other: Scores
    other_before: Scores


def fit(folder: Path) -> Fitted:
    """Fit the table; figures by families held out, and on another source."""
    problem = Problem(steps(folder, TABLE))
    theta = problem.solve(np.ones(len(problem.seconds), bool))
    forward, backward = (float(value) for value in np.exp(theta[:2]))
    predicted, bound = problem.held_out()
    other = Problem(steps(folder, OTHER))
    alone = np.concatenate([theta[:2], np.zeros(len(other.machines))])
    others = other.host(alone) > other._gpu
    return Fitted(
        forward, backward, dict(zip(problem.machines, np.exp(theta[2:]).tolist(), strict=True)),
        scores(predicted[bound], problem.seconds[bound]), scores(problem._gpu[bound], problem.seconds[bound]),
        scores(other.predict(alone)[others], other.seconds[others]),
        scores(other._gpu[others], other.seconds[others]),
    )  # fmt: skip


def report(one: Fitted) -> str:
    """Constants and figures."""
    machines = ", ".join(f"{name} {factor:.2f}" for name, factor in one.machines.items())
    return "\n".join(
        [
            f"forward {one.forward_op_s * 1e6:.1f} us, backward {one.backward_op_s * 1e6:.1f} us an operator",
            f"machines: {machines}",
            f"host-bound rows, families held out: {one.held_out.text()}",
            f"  the GPU alone: {one.before.text()}",
            f"host-bound rows of {OTHER}, no row fitted: {one.other.text()}",
            f"  the GPU alone: {one.other_before.text()}",
        ]
    )


def host_toml(one: Fitted) -> str:
    """The text of ``host.toml``."""
    known = host_constants()
    held, other = one.held_out, one.other
    return "\n".join(
        [
            "# Seconds of host time per launched operator (eager), and per parameter tensor in the update.",
            "# Written by `python -m benchmarks.fit host --tables DIR --write`; the machines' mean.",
            "",
            "[host]",
            f"forward_op_s = {one.forward_op_s:.2e}",
            f"backward_op_s = {one.backward_op_s:.2e}",
            f"param_tensor_s = {known['param_tensor_s']:.0e}  # assumed: these rows update nothing",
            f"compiled_op_s = {known['compiled_op_s']:.0e}  # assumed: CUDA graphs and compiled launches, 1-3 us",
            "",
            "[fit]  # rows that the host decides; errors with the network's family held out",
            f'table = "{TABLE}"',
            f"rows = {held.count}",
            f"median = {held.median:.3f}",
            f"mean = {held.mean:.3f}",
            f"bias = {held.bias:.3f}",
            "",
            "[fit.other]  # another source, no row of it fitted",
            f'table = "{OTHER}"',
            f"rows = {other.count}",
            f"median = {other.median:.3f}",
            f"mean = {other.mean:.3f}",
            f"bias = {other.bias:.3f}",
            "",
            "[fit.machines]  # how much slower than the mean each machine's host is",
            *(f'"{name}" = {factor:.2f}' for name, factor in one.machines.items()),
            "",
        ]
    )


def main(argv: Sequence[str]) -> int:
    """Fit, print the figures, and with ``--write`` put the constants into ``host.toml``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit host", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    parser.add_argument("--write", action="store_true", help="write the constants into graphcost/engine/host.toml")
    options = parser.parse_args(argv)
    found = fit(options.tables)
    print(report(found))
    if options.write:
        FILE.write_text(host_toml(found), "utf-8")
    return 0
