"""What AdaptDL adds to a step: host time per parameter tensor, from steps on one GPU of Pollux and Sia.

``python -m benchmarks.fit trainer --tables DIR [--write]``. A step is forward and backward
pass, the longer of GPU (as predicted) and host, and after it the update with the
library's statistics of gradients, on the host alone. One number and a factor for each of
four machines, cells of a network and a card weighed alike; each network is predicted
without its own rows. Not fitted: DeepSpeech2 and YOLOv3, whose steps wait for data
(hundreds of ms that depend on the batch's images and sounds, supposed).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._problem import Scores, scores
from graphcost.engine.trainers import TRAINERS
from graphcost.validation import MeasuredRow, Outcome, Predictor, read_table

FILE = Path(__file__).parents[2] / "graphcost" / "engine" / "trainers.toml"
NAME = "adaptdl"
TABLES = ("pollux_traces_t4.csv", "sia_traces_rtx_quadro.csv", "sia_traces_a100.csv")
FITTED = ("neumf", "bert_base", "resnet50")
JUDGED = "yolov3"
START_S = 5e-4
"""assumed: where the number begins."""
MACHINE_SPREAD = 0.3
ROW_SPREAD = 0.1


@dataclass(frozen=True)
class Step:
    """A measured step; ``launches_s`` and ``update_s`` are the host's under torch's own loop on the mean machine."""

    network: str
    card: str
    gpu_s: float
    launches_s: float
    update_s: float
    tensors: int
    seconds: float


def step_of(one: Outcome) -> Step:
    """The parts of a prediction, without what the library and the machine change."""
    step, job = one.step, one.job
    if step is None or job is None or step.forward is None or step.backward is None or step.update is None:
        raise ValueError(f"{one.row.table}, line {one.row.line}: {one.reason}")
    factor = job.cluster.server.host_factor
    tensors = sum(timed.op.phase == "update" for timed in step.ops)
    trainer = TRAINERS.find(job.recipe.trainer)
    return Step(
        network=one.row.model_id,
        card=one.row.gpu,
        gpu_s=step.compute_s + step.memory_s,
        launches_s=(step.forward.host_s + step.backward.host_s) / factor,
        update_s=step.update.host_s / factor - trainer.host_s(tensors),
        tensors=tensors,
        seconds=one.row.step_s or 0.0,
    )


def steps(folder: Path) -> list[Step]:
    """Rows of one GPU without accumulation, of the networks that do not wait for data, and the one judged."""
    names = {*FITTED, JUDGED}

    def wanted(row: MeasuredRow) -> bool:
        return row.gpus == 1 and row.accumulate == 1 and row.model_id in names and bool(row.step_s)

    rows = [row for table in TABLES for row in read_table(folder / table) if wanted(row)]
    return [step_of(one) for one in Predictor().predict(rows)]


class Problem:
    """Steps as arrays. Unknowns: log seconds per tensor, log factor of every card's machine."""

    def __init__(self, found: Sequence[Step]) -> None:
        self.cards = sorted({step.card for step in found})
        self.networks = np.array([step.network for step in found])
        self.seconds = np.array([step.seconds for step in found])
        self._at = np.array([self.cards.index(step.card) for step in found])
        self._gpu, self._launches, self._update, self._tensors = (
            np.array([getattr(step, name) for step in found])
            for name in ("gpu_s", "launches_s", "update_s", "tensors")
        )
        cells = [(step.network, step.card) for step in found]
        self._weight = np.array([cells.count(cell) ** -0.5 for cell in cells])

    def predict(self, theta: np.ndarray) -> np.ndarray:
        """Seconds of every step."""
        factor = np.exp(theta[1:])[self._at]
        tail = self._update + np.exp(theta[0]) * self._tensors
        return np.asarray(np.maximum(self._gpu, factor * self._launches) + factor * tail)

    def solve(self, networks: Sequence[str]) -> np.ndarray:
        """The unknowns from the rows of ``networks``; the machines' factors have 1 as their mean."""
        chosen = np.isin(self.networks, networks)
        start = np.concatenate([np.log([START_S]), np.zeros(len(self.cards))])

        def residuals(theta: np.ndarray) -> np.ndarray:
            errors = np.log(self.predict(theta) / self.seconds) * self._weight / ROW_SPREAD
            return np.concatenate([errors[chosen], theta[1:] / MACHINE_SPREAD])

        theta = np.asarray(least_squares(residuals, start, loss="soft_l1").x)
        mean = theta[1:].mean()
        return np.concatenate([theta[:1] + mean, theta[1:] - mean])

    def scores(self, theta: np.ndarray, network: str) -> Scores:
        """Errors on one network's rows."""
        mine = self.networks == network
        return scores(self.predict(theta)[mine], self.seconds[mine])

    def scores_without(self, network: str) -> Scores:
        """Errors on one network's rows without the library's part."""
        mine = self.networks == network
        plain = np.maximum(self._gpu, self._launches + self._update)
        return scores(plain[mine], self.seconds[mine])


@dataclass(frozen=True)
class Fitted:
    """Seconds, machines' factors, and errors of every network left out and without the library."""

    tensor_s: float
    machines: dict[str, float]
    held_out: dict[str, Scores]
    before: dict[str, Scores]


def fit(folder: Path) -> Fitted:
    """Fit the three networks; figures with each left out."""
    problem = Problem(steps(folder))
    theta = problem.solve(FITTED)
    held = {name: problem.scores(problem.solve([n for n in FITTED if n != name]), name) for name in FITTED}
    held[JUDGED] = problem.scores(theta, JUDGED)
    tensor_s, *factors = (float(value) for value in np.exp(theta))
    before = {name: problem.scores_without(name) for name in held}
    return Fitted(tensor_s, dict(zip(problem.cards, factors, strict=True)), held, before)


def report(one: Fitted) -> str:
    """Number and figures."""
    machines = ", ".join(f"{name} {factor:.2f}" for name, factor in one.machines.items())
    head = f"{one.tensor_s * 1e3:.2f} ms a parameter tensor; machines: {machines}"
    lines = [
        f"{name}: {one.held_out[name].text()}; without the library's part: {one.before[name].text()}"
        for name in one.held_out
    ]
    return "\n".join([head, *lines])


def trainers_toml(one: Fitted) -> str:
    """The text of ``trainers.toml``."""
    return "\n".join(
        [
            "# Libraries around torch's training loop: host seconds per parameter tensor of a step.",
            "# Written by `python -m benchmarks.fit trainer --tables DIR --write`; the machines' mean.",
            "",
            "# Statistics of the gradients' noise, tensor by tensor, summed and read back after the backward pass.",
            f"[{NAME}]",
            "reads_back = true",
            f"tensor_s = {one.tensor_s:.2e}",
            "",
            f"[{NAME}.held_out]  # bias on rows of one GPU, the network left out of the fit ({JUDGED} always)",
            *(f"{name} = {found.bias:.2f}" for name, found in one.held_out.items()),
            "",
            f"[{NAME}.machines]  # host time over the mean machine's: host_factor of the servers' files",
            *(f'"{name}" = {factor:.2f}' for name, factor in one.machines.items()),
            "",
        ]
    )


def main(argv: Sequence[str]) -> int:
    """Fit, print the figures, and with ``--write`` put the numbers into ``trainers.toml``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit trainer", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    parser.add_argument("--write", action="store_true", help="write graphcost/engine/trainers.toml")
    options = parser.parse_args(argv)
    found = fit(options.tables)
    print(report(found))
    if options.write:
        FILE.write_text(trainers_toml(found), "utf-8")
    return 0
