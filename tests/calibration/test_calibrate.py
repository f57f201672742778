"""Calibration: files from samples, real timings of a few layers, and what a new user gets wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcost.analysis import analyze
from graphcost.cli.main import main
from graphcost.device_db import load_device
from graphcost.ir import OpCost, Phase

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

from graphcost.calibration.cases import Case, cases
from graphcost.calibration.files import curves_of, device_table, toml_text
from graphcost.calibration.measuring import Effort, Sample, measure, measure_updates

QUICK = Effort(0.0, 3)


def samples() -> list[Sample]:
    """Products at 10 GFLOP/s, pointwise operators at 5 GB/s, nothing under 4 us."""
    made = []
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        for flops in (10**4, 10**6, 10**8):
            made.append(Sample("mm", "matmul", phase, OpCost(flops), max(4e-6, flops / 1e10)))
        for size in (10**3, 10**6, 10**8):
            made.append(Sample("relu", "pointwise", phase, OpCost(0, 0, size // 2, size // 2), max(4e-6, size / 5e9)))
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


def test_classes_and_phases_have_curves_of_their_own() -> None:
    assert set(curves_of(samples())) == {
        "matmul.forward", "matmul.backward", "pointwise.forward", "pointwise.backward",
    }  # fmt: skip


def test_every_class_that_networks_use_is_timed() -> None:
    kinds = {case.name.split()[0] for case in cases()}
    assert kinds >= {"linear", "product", "conv", "depthwise", "lstm", "relu", "softmax", "max", "embedding", "copy"}


def chosen(*starts: str) -> list[Case]:
    return [next(case for case in cases() if case.name.startswith(start)) for start in starts]


def test_layers_are_timed_with_what_the_rules_say() -> None:
    found = list(measure(chosen("linear 16x64x64", "conv 1x8", "embedding 32", "lstm 4x8", "batch norm 1x8"), QUICK))
    assert [(one.op_class, one.phase) for one in found] == [
        (op_class, phase)
        for op_class in ("matmul", "conv", "gather", "recurrent", "norm")
        for phase in (Phase.FORWARD, Phase.BACKWARD)
    ]
    assert all(one.seconds > 0 for one in found)
    linear, back = found[:2]
    assert linear.cost.matmul_flops == 2 * 16 * 64 * 64
    assert back.cost.matmul_flops == 2 * linear.cost.matmul_flops  # dX and dW: the layer lies inside a network


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
    (one, back) = measure(chosen("linear 16x64x64"), QUICK, dtype="bfloat16")
    assert one.dtype == back.dtype == "bfloat16"
    assert one.cost.bytes == 2 * (16 * 64 + 64 * 64 + 64 + 16 * 64)  # two bytes each: x, W, b, y
    assert set(curves_of([one, back])) == {"matmul.forward.bfloat16", "matmul.backward.bfloat16"}
