"""Measured against predicted on this machine's GPU: ten networks, fp32, tf32 and AMP, eager and compiled.

``python -m benchmarks.gpu_check [--minutes 8] [--output FOLDER]``: calibrates, then takes training steps
of every network and prints them beside two predictions, one from the device database alone (blind) and
one from the calibrated file. What the time limit leaves out is listed. Without a GPU it is a dry run:
miniatures on the CPU, fp32, eager and one compiled.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

import graphcost
from benchmarks._measure import machine
from benchmarks.gpu_models import SUBJECTS, Subject
from benchmarks.small_models import SMALL_MODELS
from graphcost.cli.main import main as graphcost_command
from graphcost.device_db import device_names
from graphcost.errors import GraphcostError
from graphcost.report.tables import table_text

GPU_RUNS = (("amp-fp16", "eager"), ("fp32", "eager"), ("tf32", "eager"), ("amp-fp16", "compiled"))
DRY_RUNS = (("fp32", "eager"),)
DEVICE_WORDS = {
    "H200": "h200-sxm", "H100": "h100-sxm", "A100": "a100-sxm-80", "V100": "v100-sxm2-16", "T4": "t4", "L4": "l4",
    "B200": "b200-sxm", "A10G": "a10g", "4090": "rtx4090", "3090": "rtx3090",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """One network in one setting: seconds measured, predicted blind, predicted from the calibrated file."""

    name: str
    batch: int
    precision: str
    execution: str
    measured_s: float
    blind_s: float | None
    calibrated_s: float | None


def database_device() -> str | None:
    """The database's name of this GPU; None where it has none."""
    if not torch.cuda.is_available():
        return None
    name = torch.cuda.get_device_name()
    return next((known for word, known in DEVICE_WORDS.items() if word in name and known in device_names()), None)


def built(subject: Subject, *, dry: bool) -> tuple[Any, tuple[Any, ...], int]:
    """Module, inputs and batch."""
    if dry:
        module, inputs = SMALL_MODELS[subject.mini]()
        return module, inputs, int(inputs[0].shape[0])
    module, inputs = subject.build(subject.batch)
    return module, inputs, subject.batch


def step_s(subject: Subject, precision: str, execution: str, *, dry: bool, steps: int) -> float:
    """Median seconds of a training step with Adam."""
    torch.manual_seed(0)
    place = "cpu" if dry else "cuda"
    module, inputs, _ = built(subject, dry=dry)
    module, inputs = module.train().to(place), tuple(x.to(place) for x in inputs)
    if subject.layout == "channels-last" and not dry:
        module = module.to(memory_format=torch.channels_last)
        inputs = tuple(x.contiguous(memory_format=torch.channels_last) for x in inputs)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    trained = torch.compile(module) if execution == "compiled" else module
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=not dry)
    scaler = torch.amp.GradScaler(place, enabled=precision == "amp-fp16")
    wait = (lambda: None) if dry else torch.cuda.synchronize

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(place, torch.float16, enabled=precision == "amp-fp16"):
            loss = trained(*inputs).float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(3):
        step()
    taken = []
    for _ in range(steps):
        wait()
        begun = time.perf_counter()
        step()
        wait()
        taken.append(time.perf_counter() - begun)
    return median(taken)


def predicted_s(subject: Subject, precision: str, execution: str, device: str | None, *, dry: bool) -> float | None:
    """The step from the module alone; None without a device or a peak for the precision."""
    if device is None:
        return None
    module, inputs, _ = built(subject, dry=dry)
    options: dict[str, Any] = {"precision": precision, "execution": execution, "optimizer": "adam", "device": device}
    if subject.layout != "nchw" and not dry:
        options["layout"] = subject.layout
    try:
        return graphcost.analyze(module.train(), inputs, **options).step.step_s
    except GraphcostError as error:
        print(f"no prediction: {error}", file=sys.stderr)
        return None


def checks(minutes: float, calibrated: Path, *, dry: bool) -> Iterator[Found | str]:
    """Every network in every setting until the time is up; a text names what was left out."""
    end = time.monotonic() + 60 * minutes
    blind = database_device()
    for precision, execution in DRY_RUNS if dry else GPU_RUNS:
        for name, subject in SUBJECTS.items():
            if time.monotonic() > end:
                yield f"{name}, {precision}, {execution}: no time left"
                continue
            try:
                measured = step_s(subject, precision, execution, dry=dry, steps=3 if dry else 15)
            except RuntimeError as error:  # out of memory, a compiler that is not there
                yield f"{name}, {precision}, {execution}: {str(error).splitlines()[0]}"
                continue
            yield Found(
                name, built(subject, dry=dry)[2], precision, execution, measured,
                predicted_s(subject, precision, execution, blind, dry=dry),
                predicted_s(subject, precision, execution, str(calibrated), dry=dry),
            )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0, help="for the networks, after calibrating")
    parser.add_argument("--output", type=Path, help="a folder for gpu_check.json and the calibrated file")
    chosen = parser.parse_args()
    dry = not torch.cuda.is_available()
    print(f"$ python -m benchmarks.gpu_check --minutes {chosen.minutes:g}")
    print(machine() if dry else f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    if dry:
        print("dry run: no GPU here, miniatures on the CPU")
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.output or Path(temporary)
        options = ["--name", "here", "--output", str(folder), "--device", "cpu" if dry else "cuda", "--quick"]
        if graphcost_command(["calibrate", *options]):
            return 1
        results = list(checks(chosen.minutes, folder / "here.toml", dry=dry))
    found = [one for one in results if isinstance(one, Found)]
    if chosen.output is not None:
        (chosen.output / "gpu_check.json").write_text(json.dumps([asdict(one) for one in found], indent=1), "utf-8")
    rows = [
        [
            one.name, str(one.batch), one.precision, one.execution, f"{1e3 * one.measured_s:.2f}",
            *_said(one.blind_s, one.measured_s), *_said(one.calibrated_s, one.measured_s),
        ]
        for one in found
    ]  # fmt: skip
    heads = ["network", "batch", "precision", "execution", "ms", "blind", "error", "calibrated", "error"]
    print(table_text(heads, rows, right=(1, 4, 5, 6, 7, 8), width=120))
    for kind, values in (
        ("blind", [one.blind_s for one in found]),
        ("calibrated", [one.calibrated_s for one in found]),
    ):
        errors = [abs(s / one.measured_s - 1) for s, one in zip(values, found, strict=True) if s is not None]
        if errors:
            print(f"{kind}: median error {100 * median(errors):.1f} % of {len(errors)}")
    for one in results:
        if isinstance(one, str):
            print(f"left out: {one}")
    return 0 if found else 1


def _said(predicted: float | None, measured: float) -> tuple[str, str]:
    return ("", "") if predicted is None else (f"{1e3 * predicted:.2f}", f"{100 * (predicted / measured - 1):+.0f} %")


if __name__ == "__main__":
    sys.exit(main())
