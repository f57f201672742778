"""Recurrent layers of DeepBench: shares of peak and bandwidth, time between two steps, and the engine's errors.

``python -m benchmarks.fit recurrent --tables DIR``. The form is the engine's: steps one after
another, ``T (max(F / (e P q), weights / (m BW)) + t_step)`` forward and back, with ``q`` of one
step's product; the gradient of the weights is one product over all steps. DeepBench's layers
skip the input's product (dW takes the time of one product, not two). Half of the shapes is
fitted, the other half tested, for the card's own constants and for those that ship.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._problem import Scores, scores
from benchmarks.fit.operators import DEEPBENCH
from graphcost.device_db import load_device
from graphcost.engine.quantisation import tile_share
from graphcost.engine.roofline import DeviceModel
from graphcost.ir import MAC_FLOPS, OpCost, Phase
from graphcost.ops import OpClass
from graphcost.ops.recurrent import CELLS
from graphcost.recipe import Precision, Recipe, Stack
from graphcost.training import PlannedOp
from graphcost.training.work import Part, Work

CARDS = {
    **DEEPBENCH, "GTX 1080 Ti": "gtx1080ti", "TITAN X (Maxwell)": "titan-x-maxwell",
    "TITAN X (Pascal)": "titan-x-pascal", "TITAN Xp": "titan-xp",
}  # fmt: skip
PRECISIONS = {"FP32": Precision.FP32, "FP16 in / FP32 acc": Precision.AMP_FP16}
STARTS = (0.6, 0.6, 2e-5)
"""Share of the peak, of the bandwidth, seconds between steps: where a fit begins, with a loose prior."""
SPREAD = 0.15


@dataclass(frozen=True)
class Layer:
    """One direction through a measured layer: product of a step ``[m, k] @ [k, n]``, ``steps`` times."""

    device: str
    precision: Precision
    part: Part
    m: int
    n: int
    k: int
    steps: int
    seconds: float

    @property
    def flops(self) -> int:
        """Of all steps."""
        return MAC_FLOPS * self.m * self.n * self.k * self.steps

    @property
    def value_bytes(self) -> int:
        """Of a weight."""
        return 4 if self.precision is Precision.FP32 else 2

    def planned(self) -> PlannedOp:
        """The operator as a plan has it: weights read once, states read and written at every step."""
        states = self.value_bytes * self.steps * self.m
        cost = OpCost(self.flops, 0, self.value_bytes * self.n * self.k + states * self.k, states * self.n)
        dtype = "float32" if self.precision is Precision.FP32 else "float16"
        phase = Phase.FORWARD if self.part is Part.FORWARD else Phase.BACKWARD
        work = Work("recurrent", self.part, self.m, self.n, self.k, steps=self.steps)
        return PlannedOp("rnn", "rnn", "RNN", OpClass.RECURRENT, phase, cost, 1, dtype, 1, work)


def layers(folder: Path) -> Iterator[Layer]:
    """Forward passes and gradients of data."""
    gates = {"rnn_vanilla": CELLS["RNN"].gates, "lstm": CELLS["LSTM"].gates, "gru": CELLS["GRU"].gates}
    with (folder / "deepbench_ops.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["op"] not in gates or row["gpu"] not in CARDS or row["precision"] not in PRECISIONS:
                continue
            hidden, batch, steps = (int(size) for size in re.findall(r"=(\d+)", row["dims"]))
            wide, device, precision = gates[row["op"]] * hidden, CARDS[row["gpu"]], PRECISIONS[row["precision"]]
            for part, n, k, key in (
                (Part.FORWARD, wide, hidden, "fwd_ms"), (Part.DGRAD, hidden, wide, "bwd_data_ms"),
            ):  # fmt: skip
                yield Layer(device, precision, part, batch, n, k, steps, float(row[key]) / 1e3)


def shipped(found: Sequence[Layer]) -> np.ndarray:
    """Seconds by the engine and the constants that ship."""
    recipe = Recipe(precision=found[0].precision, stack=Stack.TORCH_1)
    model = DeviceModel(load_device(found[0].device), recipe)
    return np.array([model.time(layer.planned()).time_s for layer in found])


def fit(found: Sequence[Layer], chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(share of peak, of bandwidth, seconds between steps) from the layers ``chosen``, and seconds of all by them."""
    device = load_device(found[0].device)
    peak, step = (
        device.peak("float32" if found[0].value_bytes == 4 else "float16"),
        1 if found[0].value_bytes == 4 else 8,
    )
    units = device.compute_units or 100
    compute = np.array([x.flops / peak / tile_share(x.m, x.n, x.k, 1, units, step) for x in found])
    memory = np.array([x.steps * x.n * x.k * x.value_bytes / device.mem_bytes_per_s for x in found])
    steps, seconds = np.array([x.steps for x in found]), np.array([x.seconds for x in found])

    def predict(theta: np.ndarray) -> np.ndarray:
        share, bandwidth, between = np.exp(theta)
        return np.asarray(np.maximum(compute / share, memory / bandwidth) + between * steps)

    def residuals(theta: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(predict(theta) / seconds)[chosen] / SPREAD, theta - np.log(STARTS)])

    theta = least_squares(residuals, np.log(STARTS), loss="soft_l1").x
    return np.exp(theta), predict(theta)


def report(folder: Path) -> str:
    """A line a card and format."""
    everything, lines = list(layers(folder)), []
    for device, precision in dict.fromkeys((layer.device, layer.precision) for layer in everything):
        mine = [layer for layer in everything if (layer.device, layer.precision) == (device, precision)]
        test = np.arange(len(mine)) // 2 % 2 == 1  # both passes of every second shape
        constants, predicted = fit(mine, ~test)
        seconds, engine = np.array([layer.seconds for layer in mine]), shipped(mine)
        own: Scores = scores(predicted[test], seconds[test])
        share, bandwidth, between = constants
        lines.append(
            f"{device} {precision}: compute {share:.2f}, memory {bandwidth:.2f}, {between * 1e6:.0f} us a step; "
            f"held out: {own.text()}; the engine on all: {scores(engine, seconds).text()}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Print constants and errors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit recurrent", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    print(report(parser.parse_args(argv).tables))
    return 0
