"""Fit the device model to timm's result tables and say what it gives on families held out.

Training tables of both layouts together (one stack, one card), then the inference table
with the training constants as its start. Written to ``efficiency/base.toml`` with
``--write``: the constants on all rows, and beside them the held-out figures.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.fit._problem import Problem, Sample, Scores, held_out, scores
from benchmarks.fit._timm_tables import TABLES, samples
from graphcost.device_db import load_device
from graphcost.engine.constants import Constants, constants_of, family_of
from graphcost.recipe import Stack

EFFICIENCY = Path(__file__).parents[2] / "graphcost" / "engine" / "efficiency"
START = Path(__file__).with_name("start.toml")
LAST = "channels-last."


def start_values(*, trains: bool = True) -> dict[str, float]:
    """Every constant's start by the names that ``Problem`` uses."""
    data = tomllib.loads(START.read_text("utf-8"))
    found: dict[str, float] = dict(data["rules"])
    for layout in ("", LAST):
        for column in ("memory", "compute"):
            found.update({f"{layout}{kind}.{column}": value for kind, value in data[column].items()})
    found.update({f"{LAST}{kind}.memory": value for kind, value in data["channels-last"]["memory"].items()})
    if not trains:
        other = data["inference"]
        found.update(other["rules"])
        for column in ("memory", "compute"):
            found.update(
                {f"{layout}{kind}.{column}": v for layout in ("", LAST) for kind, v in other[column].items()}
            )
    return found


def host_seconds(constants: Constants) -> tuple[float, float, float]:
    """The host's constants in the order of ``Features.launches``."""
    host = constants.host
    return host["forward_op_s"], host["backward_op_s"], host["param_tensor_s"]


@dataclass(frozen=True)
class Outcome:
    """One table: its samples, and their seconds under constants that have not seen their family."""

    table: str
    samples: tuple[Sample, ...]
    predicted: np.ndarray

    @property
    def scores(self) -> Scores:
        """Held-out figures."""
        measured = np.array([sample.seconds for sample in self.samples])
        return replace(scores(self.predicted.ravel(), np.tile(measured, len(self.predicted))), count=len(measured))

    def by_group(self) -> list[tuple[str, int, float, float]]:
        """(family, samples, median size, median signed error), the worst first."""
        errors: dict[str, list[float]] = {}
        for sample, seconds in zip(self.samples, self.predicted.T, strict=True):
            errors.setdefault(sample.group, []).extend(seconds / sample.seconds - 1)
        deals = len(self.predicted)
        found = [(g, len(e) // deals, float(np.median(np.abs(e))), float(np.median(e))) for g, e in errors.items()]
        return sorted(found, key=lambda entry: -entry[2])


@dataclass(frozen=True)
class Fit:
    """Constants on all rows and the held-out outcome by table."""

    constants: Mapping[str, float]
    outcomes: tuple[Outcome, ...]
    spread: Mapping[str, float]


def fit(tables: Mapping[str, list[Sample]], start: Mapping[str, float]) -> Fit:
    """Fit the samples of all ``tables`` together; folds keep families whole over all of them."""
    device = load_device("rtx3090")
    together = [sample for part in tables.values() for sample in part]
    constants = constants_of(device, Stack.TORCH_1)
    problem = Problem(together, start, host_seconds(constants), device.launch_s, constants.rules["vector"])
    predicted = held_out(problem)
    theta = problem.solve(np.ones(len(together), bool))
    outcomes, begun = [], 0
    for name, part in tables.items():
        outcomes.append(Outcome(name, tuple(part), predicted[:, begun : begun + len(part)]))
        begun += len(part)
    values = {name: float(np.exp(value)) for name, value in zip(problem.names, theta, strict=True)}
    return Fit(values, tuple(outcomes), _spread(together, predicted, values))


def _spread(together: list[Sample], predicted: np.ndarray, values: Mapping[str, float]) -> dict[str, float]:
    """The 80th percentile of held-out errors by the class of kernels that takes most of a step."""
    errors: dict[str, list[float]] = {}
    for sample, seconds in zip(together, predicted.T, strict=True):
        times: dict[str, float] = {}
        for row, (matrix, _, memory, _, _, count, _) in zip(sample.features.rows, sample.features.terms, strict=True):
            kind = row.removeprefix(LAST)
            group = "grouped" if "grouped" in kind else "depthwise" if "depthwise" in kind else family_of(kind)
            compute = matrix / values.get(f"{row}.compute", 1.0)
            times[group] = times.get(group, 0.0) + count * max(compute, memory / values[f"{row}.memory"])
        total = sum(times.values())
        heavy = [group for group in ("grouped", "depthwise") if times.get(group, 0.0) > 0.25 * total]
        label = heavy[0] if heavy else max(times, key=lambda group: times[group])
        errors.setdefault(label, []).extend(np.abs(seconds / sample.seconds - 1))
    return {label: round(float(np.quantile(found, 0.8)), 3) for label, found in sorted(errors.items())}


def fit_all(folder: Path) -> tuple[Fit, Fit]:
    """(training, inference)."""
    start = start_values()
    training = fit({name: samples(folder, name) for name in ("train-channels-last", "train-nchw")}, start)
    inference = fit({"infer-nchw": samples(folder, "infer-nchw")}, start_values(trains=False))
    return training, inference


def report(fits: tuple[Fit, ...]) -> str:
    """Held-out figures by table and family."""
    lines = []
    for one in fits:
        for outcome in one.outcomes:
            lines.append(f"{outcome.table}: {outcome.scores.text()}")
            parts = (f"{g} ({n}) {size:.0%}/{bias:+.0%}" for g, n, size, bias in outcome.by_group())
            lines.append("  by family, median/bias: " + ", ".join(parts))
        lines.append(f"  80th percentile of errors by heaviest class: {dict(one.spread)}")
    return "\n".join(lines)


def base_toml(training: Fit, inference: Fit) -> str:
    """The text of ``efficiency/base.toml``."""
    start = start_values()
    lines = [
        "# Written by `python -m benchmarks.fit device --tables DIR --write`; rows that nothing measured identifies",
        "# stay at their start (start.toml). Fitted on all rows; figures: families held out, 5 deals of 5 folds.",
        "# fp32 is the share of the vector units' peak: 1 here, every generation scales it.",
        "",
    ]
    for one in (training, inference):
        for outcome in one.outcomes:
            found = outcome.scores
            lines += [
                f"[fit.{outcome.table}]",
                f'table = "{TABLES[outcome.table]}"',
                f"graphs = {found.count}",
                f"median = {found.median:.3f}",
                f"mean = {found.mean:.3f}",
                f"p90 = {found.p90:.3f}",
                f"bias = {found.bias:.3f}",
                f"rank_correlation = {found.rank:.3f}",
                "",
            ]
    for label, one in (("training", training), ("inference", inference)):
        lines += [f"[fit.spread-{label}]  # 80th percentile of held-out errors, by the class that takes most time"]
        lines += [f"{group} = {value}" for group, value in one.spread.items()] + [""]
    lines += _rules(training.constants, "rules") + _rows(start, training.constants, "", "rows", every=True)
    lines += _rows(start, training.constants, LAST, "channels-last", every=False)
    lines += [
        "[inference.rules]",
        *(f"{name} = {inference.constants[name]:.3f}" for name in ("convert", "launch")),
        "",
    ]
    lines += _rows(start, inference.constants, "", "inference.rows", every=False)
    lines += _rows(start, inference.constants, LAST, "inference.channels-last", every=False)
    return "\n".join(lines).rstrip() + "\n"


FIXED_RULES = """\
vector = 0.7                 # assumed: elementwise arithmetic, of the vector units' peak
recurrent_step_s = 40e-6     # between two steps of a recurrent layer (DeepBench, V100 and Pascal: `fit recurrent`)
misaligned = 0.5             # products in a half format with a size no multiple of 8: 1.9 to 2.4 times as slow
misaligned_conv = 1.0        # convolutions in a half format with channels no multiple of 8
matrix_k_stage = 32          # elements of K that a product's loop takes at once on matrix units; fewer are padded
vector_k_stage = 64          # the same on vector units (`fit operators`)
norm_row_bytes = 512         # a layer norm over a shorter row takes as long: a row has a block of threads
winograd = 2.25              # 3x3 in fp32, forward and data gradient: F(2x2, 3x3), 16 for 36 (Lavin, Gray 2016)
grouped_half_channels = 90   # channels a group at which a grouped convolution has half the rate (timm NCHW table)
causal_rate = 0.91           # of the full square's rate: 335 / 370 TFLOP/s at 16k (FA2, H100, arXiv 2407.08608)
grouped_cliff = 0
grouped_slow_exponent = 0.65 # fits of 42 grouped networks' implied rates in the channels-last table
grouped_slow_strided = 0.3
"""

TAIL = """\
[stack.torch-1.rules]
grouped_cliff = 1            # cuDNN 8.3 in channels last; nothing is known of newer ones
misaligned_conv = 0.4        # cuDNN 8.3; on torch 2.4's rows any loss makes the fit worse
causal_rate = 0.96           # 378 / 395 TFLOP/s at 16k (Triton, H100, arXiv 2407.08608)

[stack.torch-1.rows]
# FlashAttention 1 in Triton: the second is 1.3 to 1.5 and about 2 times as fast (arXiv 2307.08691, 4.1; recalled)
attention = { compute = 0.536, memory = 0.600, fp32 = 0.54 }
attention_backward = { compute = 0.262, memory = 0.600, fp32 = 0.26 }

"""


def _rules(values: Mapping[str, float], name: str) -> list[str]:
    fitted = [f"convert = {values['convert']:.3f}  # of the conversion's traffic", f"launch = {values['launch']:.3f}"]
    return [f"[{name}]", *fitted, *FIXED_RULES.splitlines(), "", *TAIL.splitlines(), ""]


def _rows(
    start: Mapping[str, float], values: Mapping[str, float], layout: str, name: str, *, every: bool
) -> list[str]:
    """Rows of one layout: all kinds, or those that the samples have."""
    lines = [f"[{name}]"]
    kinds = sorted(
        {key.removesuffix(".memory") for key in start if key.endswith(".memory") and not key.startswith(LAST)}
    )
    for kind in kinds:
        key = f"{layout}{kind}"
        if not every and f"{key}.memory" not in values:
            continue
        memory = values.get(f"{key}.memory", start[f"{key}.memory"])
        is_memory = family_of(kind) == "memory"
        compute = 1.0 if is_memory else values.get(f"{key}.compute", start[f"{key}.compute"])
        fp32 = "" if is_memory else f", fp32 = {min(1.0, start[f'{kind}.compute']):.2f}"
        lines.append(f"{kind} = {{ compute = {compute:.3f}, memory = {memory:.3f}{fp32} }}")
    return [*lines, ""]


def main(argv: Sequence[str]) -> int:
    """Fit, print the held-out figures, and with ``--write`` put the constants into their files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit device", description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="folder of the measured tables")
    parser.add_argument("--write", action="store_true", help="write the constants into graphcost/engine/efficiency")
    options = parser.parse_args(argv)
    fits = fit_all(options.tables)
    print(report(fits))
    if options.write:
        (EFFICIENCY / "base.toml").write_text(base_toml(*fits), "utf-8")
    return 0
