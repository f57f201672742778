"""Matrix products of the operator tables: shares of peak and bandwidth by card, and errors on shapes held out.

The form is the engine's, ``max(F / (e P q), bytes / (m BW)) + t0`` with ``q`` by tiles, waves
and whole steps of K. Half of the distinct shapes is fitted, the other half tested.
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


K_STAGES = (32, 64, 128)
"""Elements of K that a batched product in fp32 may take at once: the best of these on the shapes fitted."""

STARTS = (0.3, 0.8)
"""Shares of the peak that a fit begins at: a card whose power limit holds it back is far from the others."""


@dataclass(frozen=True)
class Fitted:
    """Shares, fixed time and step of K of one card's products of one kind, with the figures on shapes held out."""

    device: str
    kind: str
    dtype: str
    k_stage: int
    compute: float
    memory: float
    fixed_s: float
    held_out: Scores

    def text(self) -> str:
        """One line of a report."""
        fixed = f"{self.fixed_s * 1e6:.0f} us, K in steps of {self.k_stage}"
        share = f"compute {self.compute:.2f}, memory {self.memory:.2f}, fixed {fixed}"
        return f"{self.device} {self.kind} {self.dtype}: {share}; held out: {self.held_out.text()}"


class Products:
    """Products of one card, kind and dtype as arrays; half of their shapes is fitted."""

    def __init__(self, products: Sequence[Product], seed: int) -> None:
        first = products[0]
        device = load_device(first.device)
        width = 2 if first.dtype == "float16" else 4
        self._products = products
        self._units = device.compute_units or 100
        self._peak_s = np.array([2.0 * p.batch * p.m * p.n * p.k for p in products]) / device.peak(first.dtype)
        moved = np.array([float(width) * p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) for p in products])
        self._memory_s = moved / device.mem_bytes_per_s
        self.seconds = np.array([p.seconds for p in products])
        shapes = sorted({p.shape for p in products})
        random.Random(seed).shuffle(shapes)
        chosen = set(shapes[: len(shapes) // 2])
        self.train = np.array([p.shape in chosen for p in products])

    def predict(self, theta: np.ndarray, compute_s: np.ndarray) -> np.ndarray:
        """Seconds under log (compute share, memory share, fixed seconds)."""
        compute, memory, fixed_s = np.exp(theta)
        return np.asarray(np.maximum(compute_s / compute, self._memory_s / memory) + fixed_s)

    def solve(self, k_stage: int) -> tuple[float, np.ndarray, np.ndarray]:
        """(cost, log constants, seconds at full efficiency) of the best fit with this step of K."""
        shares = [tile_share(p.m, p.n, p.k, p.batch, self._units, k_stage) for p in self._products]
        compute_s = self._peak_s / np.array(shares)
        best: tuple[float, np.ndarray] | None = None
        for share in STARTS:
            start = np.log([share, 0.6, 8e-6])

            def residuals(theta: np.ndarray, start: np.ndarray = start) -> np.ndarray:
                errors = np.log(self.predict(theta, compute_s) / self.seconds)[self.train] / 0.1
                return np.concatenate([errors, (theta - start) / [0.5, 0.5, 0.7]])

            found = least_squares(residuals, start, loss="soft_l1")
            if best is None or found.cost < best[0]:
                best = float(found.cost), found.x
        assert best is not None
        return *best, compute_s


def fit_products(products: Sequence[Product], seed: int = 0) -> Fitted:
    """Fit half of the shapes of one card, kind and dtype; test the others.

    DeepBench pads its half-precision products to multiples of 8, so that none pays for alignment.
    """
    first = products[0]
    whole = Products(products, seed)
    stages = K_STAGES if first.kind == "bmm" else (K_STEP if first.dtype == "float16" else 1,)
    (_, theta, compute_s), k_stage = min(
        ((whole.solve(stage), stage) for stage in stages), key=lambda pair: pair[0][0]
    )
    compute, memory, fixed_s = (float(value) for value in np.exp(theta))
    test = ~whole.train
    found = scores(whole.predict(theta, compute_s)[test], whole.seconds[test])
    return Fitted(first.device, first.kind, first.dtype, k_stage, compute, memory, fixed_s, found)


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
