"""Other cards: a generation's shares relative to those of ``base``, from single-GPU rows and products.

What is fitted are the factors of ``[scale]`` alone: products, convolutions (matrix units
and vector units apart), memory. A cell is one (source, model, card, format) and counts
once, by its median row. Every source is also predicted with factors fitted without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.fit._features import Features, features_of
from benchmarks.fit._problem import scores
from benchmarks.fit._single_gpu import Row, rows
from graphcost.engine.constants import constants_of, family_of, host_constants, table
from graphcost.hardware import Device
from graphcost.validation import Predictor

EFFICIENCY = Path(__file__).parents[2] / "graphcost" / "engine" / "efficiency"
FACTORS = ("product", "convolution", "memory", "fp32-product", "fp32-convolution")
PRIOR = {"product": 0.8, "convolution": 0.85, "memory": 1.0, "fp32-product": 0.8, "fp32-convolution": 0.8}
"""assumed: between the shares of GeForce and data-centre cards; memory as on the RTX 3090."""

ASSUMED: Mapping[str, Mapping[str, float]] = {
    "kepler": {"memory": 0.49, "fp32-convolution": 1.93},  # Pascal's, the nearest: the same frameworks and kernels
    # T4's, which 70 W hold back too; in fp32 its own product's
    "ada-l4": {"product": 0.60, "convolution": 0.47, "fp32-convolution": 0.30},
}
"""Where a fit begins, and stays without rows, if not at ``PRIOR``."""

FIXED: Mapping[str, Mapping[str, float]] = {
    "pascal": {"fp32-product": 0.80},
    "volta": {"fp32-product": 0.95},
    "turing-t4": {"fp32-product": 0.49, "product": 0.60, "convolution": 0.47, "fp32-convolution": 0.50},
    "ada-l4": {"fp32-product": 0.30},
    "ampere-datacentre": {"fp32-product": 0.86},
    "hopper": {"fp32-product": 0.74},
    "blackwell": {"product": 0.63},
    "ampere-geforce": {"product": 1.0, "convolution": 1.0, "memory": 1.0},
}
"""From the products of the operator tables (``python -m benchmarks.fit operators``). L4 and T4 are held back by 70 W.
T4: DeepBench's half-precision products and convolutions too, since its rows of whole networks wait for data.
``base`` is the RTX 3090's own."""

K_STAGE: Mapping[str, int] = {"pascal": 128, "ampere-datacentre": 128}
"""Elements of K that fp32 products take at once where ``base`` has another number (same tables, batched products)."""

ATTENTION: Mapping[str, tuple[float, str]] = {
    "ampere-datacentre": (0.96, "0.72 of the peak: FlashAttention-2, arXiv 2307.08691"),
    "blackwell": (0.73, "cuDNN: at least 1605 / 1.3 of 2250 TFLOP/s (FlashAttention-4's paper; recalled)"),
    "hopper": (0.50, "FlashAttention-2 without Hopper's own instructions: 370 of 989 TFLOP/s, arXiv 2407.08608"),
}
"""Fused attention where published kernel rates give a factor of its own; elsewhere it has that of products."""

PRIOR_SPREAD = 0.2
CELL_SPREAD = 0.1
INPUT_BOUND = ("pollux", "sia", "gavel")
"""Sources whose steps wait for data or for their scheduler's own hooks: scored, never fitted."""


@dataclass(frozen=True)
class Cell:
    """The median row of a source, model, card and format."""

    key: tuple[str, str, str, str]
    generation: str
    device: Device
    features: Features
    compiled: bool
    seconds: float
    trains_in: str


def cells(folder: Path) -> list[Cell]:
    """All cells of the tables whose networks can be built."""
    grouped: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows(folder):
        grouped.setdefault(row.cell, []).append(row)
    predictor = Predictor()
    found = []
    for key, members in sorted(grouped.items()):
        middle = sorted(members, key=lambda row: row.sample_s)[len(members) // 2]
        plan, recipe = predictor.plan(middle.job), middle.job.recipe
        if isinstance(plan, str) or middle.measured.step_s is None:
            continue
        constants = constants_of(middle.device, recipe.stack)
        if constants.is_fallback:
            continue
        found.append(
            Cell(
                key, constants.generation, middle.device, features_of(plan, middle.device),
                recipe.execution.value == "compiled", middle.measured.step_s, str(recipe.stack),
            )
        )  # fmt: skip
    return found


def predict(cell: Cell, factors: Mapping[str, float]) -> float:
    """Seconds of a cell's step under ``factors`` over the constants of ``base``."""
    base = table("base")
    rules = {**base["rules"], **base["stack"].get(cell.trains_in, {}).get("rules", {})}
    last = {**base["rows"], **base["channels-last"]}
    total = 0.0
    for name, (matrix, vector, memory, convert, launches, count, on_vector) in zip(
        cell.features.rows, cell.features.terms, strict=True
    ):
        kind = name.removeprefix("channels-last.")
        row = (last if name != kind else base["rows"])[kind]
        family = family_of(kind)
        if family == "memory":
            compute = 1.0
        elif on_vector:
            compute = row["fp32"] * factors[f"fp32-{family}"]
        else:
            compute = row["compute"] * factors[family]
        busy = max(matrix / compute + vector / rules["vector"], memory / (row["memory"] * factors["memory"]))
        fixed = convert * rules["convert"] + launches * rules["launch"] * cell.device.launch_s
        total += count * (busy + fixed)
    host = host_constants()
    forward, backward, params = cell.features.launches
    if cell.compiled:
        waits = host["compiled_op_s"] * (forward + backward)
    else:
        waits = host["forward_op_s"] * forward + host["backward_op_s"] * backward + host["param_tensor_s"] * params
    return float(max(total, waits))


def fit_factors(generation: str, chosen: list[Cell]) -> dict[str, float]:
    """Factors of a generation on the cells ``chosen``, drawn towards the prior; what products fix stays."""
    fixed = FIXED.get(generation, {})
    assumed = {**PRIOR, **ASSUMED.get(generation, {})}
    free = [name for name in FACTORS if name not in fixed]
    start = np.log([assumed[name] for name in free])

    def factors(theta: np.ndarray) -> dict[str, float]:
        return {**fixed, **{name: float(value) for name, value in zip(free, np.exp(theta), strict=True)}}

    def residuals(theta: np.ndarray) -> np.ndarray:
        errors = [np.log(predict(cell, factors(theta)) / cell.seconds) / CELL_SPREAD for cell in chosen]
        return np.array([*errors, *((theta - start) / PRIOR_SPREAD)])

    return factors(least_squares(residuals, start, loss="soft_l1", diff_step=1e-3).x)


@dataclass(frozen=True)
class Outcome:
    """A generation's factors, and its usable cells with their seconds when their source is held out."""

    generation: str
    factors: Mapping[str, float]
    cells: tuple[Cell, ...]
    held_out: tuple[float, ...]
    others: tuple[Cell, ...]

    @property
    def errors(self) -> np.ndarray:
        """Signed errors of the usable cells, sources held out."""
        return np.array([seconds / cell.seconds - 1 for seconds, cell in zip(self.held_out, self.cells, strict=True)])


def outcomes(folder: Path) -> list[Outcome]:
    """Every generation that has cells, and those whose factors are known otherwise."""
    everything = cells(folder)
    found = []
    for generation in sorted({cell.generation for cell in everything} | set(ASSUMED)):
        mine = [cell for cell in everything if cell.generation == generation]
        usable = tuple(cell for cell in mine if cell.key[0] not in INPUT_BOUND)
        seconds = []
        for cell in usable:
            others = [one for one in usable if one.key[0] != cell.key[0]]
            seconds.append(predict(cell, fit_factors(generation, others)))
        waiting = tuple(cell for cell in mine if cell.key[0] in INPUT_BOUND)
        found.append(Outcome(generation, fit_factors(generation, list(usable)), usable, tuple(seconds), waiting))
    return found


def report(found: list[Outcome]) -> str:
    """Factors by generation and errors by cell."""
    lines = []
    for one in found:
        lines.append(f"{one.generation}: " + ", ".join(f"{name} {one.factors[name]:.2f}" for name in FACTORS))
        for cell, error in zip(one.cells, one.errors, strict=True):
            inside = predict(cell, one.factors) / cell.seconds - 1
            lines.append(f"  {' '.join(cell.key)}: source held out {error:+.0%}, fitted {inside:+.0%}")
        for cell in one.others:
            lines.append(
                f"  {' '.join(cell.key)}: {predict(cell, one.factors) / cell.seconds - 1:+.0%}, waits for data"
            )
    predicted = np.array([seconds for one in found for seconds in one.held_out])
    measured = np.array([cell.seconds for one in found for cell in one.cells])
    lines.append(f"sources held out, without those that wait for data: {scores(predicted, measured).text()}")
    return "\n".join(lines)


HEADS = {
    "ada": 'arch = "Ada Lovelace"', "ada-l4": 'devices = ["l4"]', "ampere-datacentre": 'devices = ["a100*", "a30*"]',
    "ampere-geforce": 'arch = "Ampere"', "blackwell": 'arch = "Blackwell"', "hopper": 'arch = "Hopper"',
    "kepler": 'arch = "Kepler"', "pascal": 'arch = "Pascal"', "turing": 'arch = "Turing"',
    "turing-t4": 'devices = ["t4"]', "volta": 'arch = "Volta"',
}  # fmt: skip


def generation_toml(one: Outcome) -> str:
    """The text of a generation's file."""
    fixed = FIXED.get(one.generation, {})
    lines = [
        "# Written by `python -m benchmarks.fit generations --tables DIR --write`: factors over the rows of `base`.",
        'inherits = "base"',
        HEADS[one.generation],
        "",
        "[scale]",
    ]
    for name in FACTORS:
        why = "operator tables" if name in fixed else "fitted" if one.cells else "assumed"
        why = "base is this card's" if fixed.get(name) == 1.0 else why
        lines.append(f"{name} = {one.factors[name]:.2f}  # {why}")
    if one.generation in ATTENTION:
        factor, source = ATTENTION[one.generation]
        lines.append(f"attention = {factor:.2f}  # {source}")
    if one.generation in K_STAGE:
        lines += ["", "[rules]", f"vector_k_stage = {K_STAGE[one.generation]}  # operator tables"]
    if one.cells:
        size = np.abs(one.errors)
        lines += [
            "",
            "[fit.single-gpu]  # training rows of one GPU, each source predicted without itself",
            f"cells = {len(one.cells)}",
            f"median = {np.median(size):.3f}",
            f"mean = {size.mean():.3f}",
            f"bias = {np.median(one.errors):.3f}",
        ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> int:
    """Fit, print the held-out figures, and with ``--write`` put the constants into their files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit generations", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    parser.add_argument("--write", action="store_true", help="write the constants into graphcost/engine/efficiency")
    options = parser.parse_args(argv)
    found = outcomes(options.tables)
    print(report(found))
    for one in found if options.write else ():
        (EFFICIENCY / f"{one.generation}.toml").write_text(generation_toml(one), "utf-8")
    return 0
