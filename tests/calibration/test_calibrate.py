"""Calibration: files from samples, real timings of a few layers, and what a new user gets wrong."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from graphcost.analysis import analyze
from graphcost.cli.main import main
from graphcost.device_db import load_device
from graphcost.ir import OpCost, Phase

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

import torch

from graphcost.calibration.cases import Case, cases
from graphcost.calibration.files import curves_of, device_table, toml_text
from graphcost.calibration.measuring import Effort, Sample, measure, measure_updates, merged
from graphcost.calibration.passes import Pass, tables
from graphcost.calibration.workers import Together
from graphcost.engine.curves import Kernel, kernel_of
from graphcost.sources import load
from graphcost.training import plan_step

QUICK = Effort(0.0, 3, 1)


def samples() -> list[Sample]:
    """Products at 10 GFLOP/s, pointwise operators at 5 GB/s, nothing under 4 us."""
    made = []
    for name in ("forward", "dgrad", "wgrad"):
        for flops in (10**4, 10**6, 10**8):
            made.append(
                Sample(f"mm {flops}", Kernel("matmul", "linear", name), OpCost(flops), max(4e-6, flops / 1e10))
            )
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        for size in (10**3, 10**6, 10**8):
            relu = Kernel("pointwise", "Relu", str(phase))
            made.append(Sample(f"relu {size}", relu, OpCost(0, 0, size // 2, size // 2), max(4e-6, size / 5e9)))
    return made


def test_a_file_made_of_samples_predicts_their_rates(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml_text(device_table(samples())))
    device = load_device(str(path))
    assert device.peak_flops_per_s["float32"] == pytest.approx(1e10) and device.launch_s == 4e-6
    found = analyze("zoo:mlp", batch=512, device=str(path), optimizer="sgd")
    flops = found.training.forward_matmul_flops + found.training.backward_matmul_flops
    assert found.step.compute_s == pytest.approx(flops / 1e10, rel=0.02)  # biases are a little more
    assert found.step.host_s == 0.0  # the curves hold the launches


def test_kernels_and_classes_have_curves_of_their_own() -> None:
    assert set(curves_of(samples())) == {
        "matmul.forward", "matmul/linear.forward", "matmul.backward", "matmul/linear.dgrad", "matmul/linear.wgrad",
        "pointwise.forward", "pointwise/Relu.forward", "pointwise.backward", "pointwise/Relu.backward",
    }  # fmt: skip


def test_passes_take_the_median_of_every_timing() -> None:
    first, second = (samples()[0] for _ in range(2))
    times = [replace(first, seconds=seconds) for seconds in (5e-6, 9e-6, 4e-6)]
    (found,) = merged([[one] for one in times])
    assert found == replace(second, seconds=5e-6)


def test_a_cluster_is_made_of_what_its_workers_found(tmp_path: Path) -> None:
    together = [
        Together(2, "gloo", {1 << 10: 1e-3 * slow, 1 << 20: 2e-3 * slow}, 0.1 * slow, tuple(samples()))
        for slow in (3, 1, 2)
    ]
    device, cluster = tables([Pass(tuple(samples()), one) for one in together], "cpu")
    assert cluster is not None and cluster["device"]["curves"] == device["curves"]
    assert cluster["server"]["interference"] == pytest.approx(0.2)
    assert cluster["server"]["curves"]["all-reduce.2"]["seconds"] == [pytest.approx(2e-3), pytest.approx(4e-3)]
    path = tmp_path / "here-x2.toml"
    path.write_text(toml_text(cluster))
    found = analyze("zoo:mlp", batch=512, gpus=2, cluster=str(path), optimizer="sgd")
    assert found.step.comm_s >= 4e-3


def test_every_class_that_networks_use_is_timed() -> None:
    kinds = {case.name.split()[0] for case in cases()}
    assert kinds >= {"linear", "product", "conv", "depthwise", "lstm", "relu", "softmax", "max", "embedding", "copy"}


def chosen(*starts: str) -> list[Case]:
    return [next(case for case in cases() if case.name.startswith(start)) for start in starts]


def test_every_kernel_is_timed_with_what_the_rules_say() -> None:
    found = list(
        measure(
            chosen("linear 16x64x64", "conv 1x8", "transposed 2x32", "embedding 32", "lstm 4x8", "batch norm 1x8"),
            QUICK,
        )
    )
    assert [one.kernel.names[0] for one in found] == [
        "matmul/linear.forward", "matmul/linear.dgrad", "matmul/linear.wgrad", "reduce/bias.backward",
        "conv/conv.forward", "conv/conv.dgrad", "conv/conv.wgrad", "reduce/conv_bias.backward",
        "conv/conv_strided.dgrad", "conv/conv_strided.forward", "conv/conv_strided.wgrad",
        "reduce/conv_bias.backward",
        "gather/Gather.forward", "gather/Gather.backward", "recurrent/recurrent.forward", "recurrent/recurrent.dgrad",
        "norm/BatchNormalization.forward", "norm/BatchNormalization.backward",
    ]  # fmt: skip
    assert all(one.seconds > 0 for one in found)
    products = [one.cost.matmul_flops for one in found[:4]]
    assert products == [2 * 16 * 64 * 64] * 3 + [0]  # y, dX and dW: the layer lies inside a network; db sums


def test_what_is_predicted_is_what_was_timed() -> None:
    """Every kernel that a plan of a small network asks for has a curve of its own."""
    names = {name for case in chosen("linear 16x64x64", "relu 16") for one in measure([case], QUICK)
             for name in one.kernel.names}  # fmt: skip
    linear, relu = torch.nn.Linear(64, 64), torch.nn.ReLU()
    network = torch.nn.Sequential(linear, relu, torch.nn.Linear(64, 64))
    plan = plan_step(load(network.train(), (torch.randn(16, 64),)))
    asked = {kernel_of(op).names[0] for op in (*plan.forward, *plan.backward) if op.launches}
    assert asked <= names


def test_the_allocator_keeps_its_memory_where_it_can() -> None:
    """In a process of its own: the setting stays."""
    lines = "from graphcost.calibration.allocator import keep_memory; print(keep_memory())"
    said = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout.strip()
    assert said == str(platform.libc_ver()[0] == "glibc")


def test_updates_grow_with_the_parameter() -> None:
    found = [one for one in measure_updates(QUICK) if one.name.startswith("adam")]
    assert [one.cost.bytes for one in found] == sorted(one.cost.bytes for one in found)
    assert found[-1].seconds > found[0].seconds


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--output", "/nonexistent"], "no such folder"),
        (["--device", "tpu"], "cpu or cuda"),
        (["--workers", "1"], "workers"),
        (["--backend", "mpi"], "backend"),
    ],
)
def test_bad_input(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", *arguments]) == 2
    said = capsys.readouterr().err
    assert complaint in said and "Traceback" not in said


def test_half_precision_has_curves_of_its_own() -> None:
    found = list(measure(chosen("linear 16x64x64"), QUICK, dtype="bfloat16"))
    assert {one.kernel.dtype for one in found} == {"bfloat16"}
    assert found[0].cost.bytes == 2 * (16 * 64 + 64 * 64 + 64 + 16 * 64)  # two bytes each: x, W, b, y
    assert set(curves_of(found)) == {
        "matmul.forward.bfloat16", "matmul/linear.forward.bfloat16", "matmul.backward.bfloat16",
        "matmul/linear.dgrad.bfloat16", "matmul/linear.wgrad.bfloat16",
        "reduce.backward.bfloat16", "reduce/bias.backward.bfloat16",
    }  # fmt: skip
