"""Matrix products of the operator tables: shares of peak and bandwidth by card, and errors on shapes held out.

The form is the engine's, ``max(F / (e P q), bytes / (m BW)) + t0`` with ``q`` by tiles and
waves. Half of the distinct shapes is fitted, the other half tested.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._problem import Scores, scores
from graphcost.device_db import load_device
from graphcost.engine.quantisation import K_STEP, tile_share

NEUSIGHT = {
    "P100-PCIe-16GB": "p100-pcie-16", "V100-PCIe-32GB": "v100-pcie-32", "T4": "t4", "A100-PCIe-40GB": "a100-pcie-40",
    "A100-PCIe-80GB": "a100-pcie-80", "H100-SXM5-80GB": "h100-sxm", "L4": "l4",
}  # fmt: skip
DEEPBENCH = {"V100-SXM2 (DGX-1)": "v100-sxm2-16", "T4": "t4", "P100 (PCIe)": "p100-pcie-16"}


@dataclass(frozen=True)
class Product:
    """One measured product ``[m, k] @ [k, n]``, ``batch`` times."""

    kind: str
    device: str
    dtype: str
    batch: int
    m: int
    n: int
    k: int
    seconds: float

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """What a split goes by."""
        return self.batch, self.m, self.n, self.k


def neusight(folder: Path) -> Iterator[Product]:
    """``linear`` and ``bmm`` in fp32, TF32 off."""
    with (folder / "neusight_ops_gemm.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["gpu"] in NEUSIGHT:
                sizes = (int(row[name]) for name in ("batch", "m", "n", "k"))
                yield Product(row["op"], NEUSIGHT[row["gpu"]], "float32", *sizes, float(row["latency_ms"]) / 1e3)


def deepbench(folder: Path) -> Iterator[Product]:
    """GEMMs in fp32, and in fp16 with fp32 accumulation."""
    with (folder / "deepbench_ops.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            dtype = {"FP32": "float32", "FP16 in / FP32 acc": "float16"}.get(row["precision"])
            if row["op"] != "gemm" or row["gpu"] not in DEEPBENCH or dtype is None or not row["fwd_ms"]:
                continue
            m, n, k = (int(size) for size in re.findall(r"[MNK]=(\d+)", row["dims"]))
            yield Product("gemm", DEEPBENCH[row["gpu"]], dtype, 1, m, n, k, float(row["fwd_ms"]) / 1e3)


@dataclass(frozen=True)
class Fitted:
    """Shares and the fixed time of one card's products of one kind, with the figures on shapes held out."""

    device: str
    kind: str
    dtype: str
    compute: float
    memory: float
    fixed_s: float
    held_out: Scores

    def text(self) -> str:
        """One line of a report."""
        fixed = f"{self.fixed_s * 1e6:.0f} us"
        share = f"compute {self.compute:.2f}, memory {self.memory:.2f}, fixed {fixed}"
        return f"{self.device} {self.kind} {self.dtype}: {share}; held out: {self.held_out.text()}"


def fit_products(products: list[Product], seed: int = 0) -> Fitted:
    """Fit half of the shapes of one card, kind and dtype; test the others."""
    first = products[0]
    device = load_device(first.device)
    half = first.dtype == "float16"
    width = 2 if half else 4
    shares = np.array([tile_share(p.m, p.n, p.k, p.batch, device.compute_units or 100, K_STEP if half else 1)
                       for p in products])  # fmt: skip
    flops = np.array([2.0 * p.batch * p.m * p.n * p.k for p in products])
    moved = np.array([float(width) * p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) for p in products])
    aligned = np.array(
        [1.0 if not half or (p.n % 8 == 0 and p.k % 8 == 0 and p.m % 8 == 0) else 0.5 for p in products]
    )
    compute_s = flops / (device.peak(first.dtype) * shares * aligned)
    memory_s = moved / device.mem_bytes_per_s
    seconds = np.array([p.seconds for p in products])
    shapes = sorted({p.shape for p in products})
    random.Random(seed).shuffle(shapes)
    chosen = set(shapes[: len(shapes) // 2])
    train = np.array([p.shape in chosen for p in products])
    start = np.log([0.8, 0.6, 8e-6])

    def predict(theta: np.ndarray) -> np.ndarray:
        compute, memory, fixed_s = np.exp(theta)
        return np.maximum(compute_s / compute, memory_s / memory) + fixed_s

    def residuals(theta: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(predict(theta) / seconds)[train] / 0.1, (theta - start) / [0.5, 0.5, 0.7]])

    theta = least_squares(residuals, start, loss="soft_l1").x
    compute, memory, fixed_s = (float(value) for value in np.exp(theta))
    found = scores(predict(theta)[~train], seconds[~train])
    return Fitted(first.device, first.kind, first.dtype, compute, memory, fixed_s, found)


def fit_tables(folder: Path) -> list[Fitted]:
    """Every card, kind and dtype of both tables."""
    groups: dict[tuple[str, str, str], list[Product]] = {}
    for product in (*neusight(folder), *deepbench(folder)):
        groups.setdefault((product.device, product.kind, product.dtype), []).append(product)
    return [fit_products(group) for _, group in sorted(groups.items())]


def operators_report(folder: Path) -> str:
    """One line a card and kind."""
    return "\n".join(one.text() for one in fit_tables(folder))


def main(argv: Sequence[str]) -> int:
    """Print shares and held-out figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit operators", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    print(operators_report(parser.parse_args(argv).tables))
    return 0
