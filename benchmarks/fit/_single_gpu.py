"""Which rows of the measured tables say something about a card: one GPU, training, a known network, a whole step.

Rows of one (source, model, card, format) make a cell, so that sweeps do not drown the rest. What a
row ran is the validation's knowledge (``graphcost/validation``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphcost.hardware import Device
from graphcost.recipe import Precision
from graphcost.validation import Job, MeasuredRow, Skipped, job_of, read_table

SOURCES = (
    "nvidia_dle_train.csv", "lambda_pytorch.csv", "gavel_throughputs.csv", "pollux_traces_t4.csv",
    "sia_traces_a100.csv", "sia_traces_rtx_quadro.csv", "dlperf_v100.csv", "hkbu_ddl_benchmarks.csv",
    "cnn_single_gpu_legacy.csv", "ryujaehun_torchvision.csv", "tf_cnn_benchmarks_2017.csv", "mxnet_k80_scaling.csv",
)  # fmt: skip

OLDER_CARDS = {"ryujaehun": ("Pascal", "Turing"), "cnn": ("Pascal",), "tf": ("Kepler",), "mxnet": ("Kepler",)}
"""Sources used for these cards alone: 12 images a step leave faster ones waiting for the host, and frameworks of 2016
to 2018 are no measure of newer ones."""

MODELS = ("resnet50", "vgg16", "resnet152", "bert_base", "efficientnet_b0", "resnext101_32x4d")


@dataclass(frozen=True)
class Row:
    """One measured step and what it ran."""

    source: str
    measured: MeasuredRow
    job: Job

    @property
    def device(self) -> Device:
        """The card."""
        return self.job.cluster.device

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """What medians are taken over."""
        return self.source, self.measured.model_id, self.device.id, str(self.job.recipe.precision)

    @property
    def sample_s(self) -> float:
        """Seconds of one sample."""
        assert self.measured.step_s is not None
        return self.measured.step_s / self.job.batch


def rows(folder: Path) -> Iterator[Row]:
    """Every usable row: a known card, a modelled network, a stated batch, no accumulation."""
    for file in SOURCES:
        source = file.partition("_")[0]
        for measured in read_table(folder / file):
            if measured.gpus != 1 or measured.phase != "train" or measured.accumulate != 1:
                continue
            if measured.model_id not in MODELS or "SUSPECT" in measured.notes:
                continue
            job = job_of(measured)
            if not isinstance(job, Skipped) and _tells(source, measured, job):
                yield Row(source, measured, job)


def _tells(source: str, measured: MeasuredRow, job: Job) -> bool:
    """Whether the row is about the card."""
    device, precision = job.cluster.device, job.recipe.precision
    if device.arch not in OLDER_CARDS.get(source, (device.arch,)):
        return False
    if precision is Precision.AMP_FP16 and "float16" not in device.peak_flops_per_s:
        return False
    # B200: a label FP32 is surely TF32's (2.3 times the peak); ResNet-50 is no faster than on H100.
    return device.id != "b200-sxm" or (precision is not Precision.FP32 and measured.model_id != "resnet50")
