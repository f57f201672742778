"""Single-GPU training rows of other tables as samples: other cards, other stacks, a few models.

What a source ran is written here once, as a recipe: number format, layout, what is fused.
Rows of one (source, model, card, format) make a cell, so that sweeps do not drown the rest.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.fit import graphs
from graphcost.device_db import load_device
from graphcost.graph import build_graph
from graphcost.hardware import Device
from graphcost.ir import Model
from graphcost.models_zoo import build
from graphcost.recipe import (
    HALF_EVERYTHING,
    OPTIMIZERS,
    Execution,
    Layout,
    OptimizerKernels,
    Precision,
    Recipe,
    Stack,
)
from graphcost.training import StepPlan, plan_step

SOURCES = (
    "nvidia_dle_train.csv", "lambda_pytorch.csv", "gavel_throughputs.csv", "pollux_traces_t4.csv",
    "sia_traces_a100.csv", "sia_traces_rtx_quadro.csv", "dlperf_v100.csv", "hkbu_ddl_benchmarks.csv",
    "cnn_single_gpu_legacy.csv", "ryujaehun_torchvision.csv",
)  # fmt: skip

DEVICES = (
    ("v100-sxm2-16", "V100-SXM2-16"), ("v100-sxm2-32", "V100-SXM2-32"), ("v100-sxm2-32", "V100-SXM3"),
    ("v100-sxm2-16", "V100"), ("p100-pcie-16", "P100"), ("t4", "T4"), ("a100-sxm-40", "A100-SXM4-40"),
    ("a100-sxm-80", "A100-SXM4-80"), ("a100-pcie-40", "A100 40GB PCIe"), ("a100-pcie-80", "A100 80GB PCIe"),
    ("a100-sxm-80", "A100 80GB SXM4"), ("h100-sxm", "H100 80GB SXM5"), ("h100-pcie", "H100 80GB PCIe"),
    ("h200-sxm", "H200-SXM"), ("b200-sxm", "B200"), ("rtx2080ti", "RTX 2080 Ti"), ("rtx3090", "RTX 3090"),
    ("rtx4090", "RTX 4090"), ("a10", "A10"), ("gtx1080ti", "GTX 1080 Ti"), ("titan-x-pascal", "Pascal Titan X"),
    ("titan-xp", "TITAN Xp"), ("titan-v", "TITAN V"), ("quadro-rtx6000", "Quadro RTX 6000"),
)  # fmt: skip
"""Device file, and how a table's name for it begins; the longest that fits."""

OLDER_CARDS = {"ryujaehun": ("Pascal", "Turing"), "cnn": ("Pascal",)}
"""Sources used for these cards alone: 12 images a step leave faster ones waiting for the host, and frameworks of 2016
to 2018 are no measure of newer ones."""

APEX_O2 = HALF_EVERYTHING | {"Add", "Sub", "Mul", "Where", "Div"}
"""The whole network and its attention mask are in the half format, so that nothing is promoted to fp32."""

MODELS = ("resnet50", "vgg16", "resnet152", "bert_base", "efficientnet_b0", "resnext101_32x4d")


@dataclass(frozen=True)
class Row:
    """One measured step."""

    source: str
    model: str
    device: Device
    precision: Precision
    framework: str
    batch: int
    seconds: float
    notes: str
    seq: int = 0

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """What medians are taken over."""
        return self.source, self.model, self.device.id, str(self.precision)


def rows(folder: Path) -> Iterator[Row]:
    """Every usable row: a known card, a modelled network, a stated batch, no accumulation."""
    for file in SOURCES:
        with (folder / file).open(newline="", encoding="utf-8") as handle:
            for line in csv.DictReader(handle):
                row = _row(file.partition("_")[0], line)
                if row is not None:
                    yield row


def _row(source: str, line: dict[str, str]) -> Row | None:
    usable = line["n_gpus"] == "1" and line["model_id"] in MODELS and line["phase"] == "train"
    fits = [(len(name), device) for device, name in DEVICES if line["gpu"].startswith(name)]
    if not usable or not fits or not line["batch_per_gpu"] or not line["step_time_ms"]:
        return None
    if "SUSPECT" in line["notes"] or line["grad_accum"] not in ("", "1"):
        return None
    device = load_device(max(fits)[1])
    if device.arch not in OLDER_CARDS.get(source, (device.arch,)):
        return None
    asked = line["precision"]
    if device.id == "b200-sxm" and (asked == "FP32" or line["model_id"] == "resnet50"):
        return None  # the label is surely TF32's (2.3 times the peak); ResNet-50 is no faster than on H100
    if asked.startswith(("AMP", "FP16")):
        precision = Precision.AMP_FP16
    elif asked.startswith("TF32") and "tf32" in device.peak_flops_per_s:
        precision = Precision.TF32
    else:
        precision = Precision.FP32
    if precision is Precision.AMP_FP16 and "float16" not in device.peak_flops_per_s:
        return None
    seq = next((length for length in (384, 128, 64) if str(length) in line["task_input"]), 0)
    if line["model_id"] == "bert_base" and not seq:
        return None  # the length of its sequences is not told
    return Row(
        source, line["model_id"], device, precision, line["framework"], int(float(line["batch_per_gpu"])),
        float(line["step_time_ms"]) / 1e3, line["notes"], seq if line["model_id"] == "bert_base" else 0,
    )  # fmt: skip


def recipe_of(row: Row) -> Recipe:
    """What the source's scripts ran, as far as it is known."""
    bert = row.model == "bert_base"
    amp = row.precision is Precision.AMP_FP16
    recipe = Recipe(
        optimizer=OPTIMIZERS["adam" if bert else "momentum"],
        precision=row.precision,
        stack=Stack.TORCH_1,
        kernels=OptimizerKernels.FUSED if bert else OptimizerKernels.FOREACH,
        fused_attention=False,
    )
    if bert and row.source in ("nvidia", "lambda", "dlperf"):
        recipe = replace(recipe, half_ops=APEX_O2)  # Apex at level O2, TensorFlow's graph rewrite
    xla = "xla" in row.notes.lower() and "without xla" not in row.notes.lower() and "w/o xla" not in row.notes.lower()
    if xla:
        recipe = replace(recipe, execution=Execution.COMPILED)
    if amp and row.source in ("nvidia", "dlperf"):
        recipe = replace(recipe, layout=Layout.CHANNELS_LAST)  # NVIDIA's training scripts use it with mixed precision
    return recipe


@cache
def _model(name: str, batch: int, seq: int) -> Model | None:
    if name in ("resnet50", "resnet152", "vgg16"):
        return build(name, batch=batch)
    if name == "bert_base":
        return build("bert-base", batch=batch, dims={"seq": seq})
    return graphs.load(name, 224, batch)


@cache
def plan_of(name: str, batch: int, seq: int, recipe: Recipe) -> StepPlan | None:
    """The step that a row ran; None where the network has no trace."""
    model = _model(name, batch, seq)
    return None if model is None else plan_step(build_graph(model), recipe)
