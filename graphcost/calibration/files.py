"""Measurements as a device and a cluster file, in the form of the device database."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from graphcost._version import __version__
from graphcost.calibration.measuring import Sample
from graphcost.calibration.workers import Together
from graphcost.curves import RateCurve, curve_through
from graphcost.engine.curves import COMPUTES, curve_work


def curves_of(samples: Iterable[Sample]) -> dict[str, RateCurve]:
    """A curve for every kernel and every class that was timed, over FLOPs or bytes.

    ``conv/conv_1x1.wgrad`` is one kernel's, ``conv.backward`` its class's. Those of another dtype than
    float32 carry it: ``conv.backward.float16``.
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for one in samples:
        work = curve_work(one.kernel.op_class, one.cost)
        if work > 0:
            for name in one.kernel.names:
                points.setdefault(name, []).append((work, one.seconds))
    return {name: curve_through(found) for name, found in sorted(points.items())}


def device_table(samples: Iterable[Sample], device: str = "cpu") -> dict[str, Any]:
    """A device file's content. The peak is the best rate of products, bandwidth the best of large copies."""
    measured = list(samples)
    peaks: dict[str, float] = {}
    for one in measured:
        if one.kernel.op_class in COMPUTES:
            dtype = one.kernel.dtype
            peaks[dtype] = max(peaks.get(dtype, 0.0), _round(one.cost.flops / one.seconds))
    moves = [
        one.cost.bytes / one.seconds
        for one in measured
        if one.kernel.op_class == "pointwise" and one.cost.bytes > 1 << 22
    ]
    return {
        "name": _name(device),
        "vendor": "NVIDIA" if device.startswith("cuda") else platform.machine() or "unknown",
        "arch": "measured",
        "confidence": "measured",
        "source": f"graphcost calibrate {__version__}, {date.today().isoformat()}, on the machine itself",
        "mem_bytes": float(_memory_bytes(device)),
        "mem_bytes_per_s": _round(max(moves)),
        "launch_s": _round(min(one.seconds for one in measured)),
        "vector_dtypes": ["float32"],
        "peak_flops_per_s": peaks,
        "curves": {name: _curve(curve) for name, curve in curves_of(measured).items()},
    }


def cluster_table(together: Together, device: Mapping[str, Any]) -> dict[str, Any]:
    """A cluster file's content: one server of ``together.ranks`` workers, its collectives as measured."""
    large = max(together.all_reduce_s)
    rate = 2 * (together.ranks - 1) / together.ranks * large / together.all_reduce_s[large]
    smallest = min(together.all_reduce_s)
    latency_s = min(0.01, together.all_reduce_s[smallest] / (2 * (together.ranks - 1)))
    link = {"kind": "pcie", "bytes_per_s": _round(rate), "latency_s": _round(latency_s)}
    curve = curve_through([(float(size), seconds) for size, seconds in together.all_reduce_s.items()])
    source = f"{device['source']}; all-reduce as torch's DDP does it, {together.backend}, {together.ranks} workers"
    return {
        "source": source,
        "max_servers": 1,
        "notes": "Measured while all workers were busy. There is no network: nic repeats the link inside.",
        "device": {**device, "id": "measured-busy", "name": f"{device['name']}, {together.ranks} workers busy"},
        "server": {
            "gpus": together.ranks,
            "nics": 1,
            "confidence": "measured",
            "interference": _round(together.interference),
            "pcie": link,
            "nic": {**link, "kind": "tcp"},
            "curves": {f"all-reduce.{together.ranks}": _curve(curve)},
        },
    }


def toml_text(table: Mapping[str, Any]) -> str:
    """The table as TOML."""
    import tomli_w

    return tomli_w.dumps(dict(table))


def _curve(curve: RateCurve) -> dict[str, list[float]]:
    return {"work": [_round(one) for one in curve.work], "seconds": [_round(one) for one in curve.seconds]}


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def _name(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name())
    return f"{platform.processor() or platform.machine()} CPU, one thread"


def _memory_bytes(device: str) -> int:
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.get_device_properties(device).total_memory)
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
