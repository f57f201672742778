"""Self-checks of device, server and cluster files.

They catch what went wrong in other public tables: sparse peaks quoted as dense,
the sum of both directions quoted as one, bits quoted as bytes, vector rates
quoted as matrix rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from graphcost.errors import DataFileError
from graphcost.hardware import Cluster, Device, Link, LinkKind, Server
from graphcost.links import NETWORK_KINDS
from graphcost.units import format_bandwidth, format_flops_per_s

IDENTITY_TOLERANCE = 0.03
"""Published peaks are rounded; units x clock x FMA x 2 reproduces them within 1.3 %."""

DOUBLING_LIMIT = 2.1
"""Half the width, at most twice the rate; a 2:4-sparse figure doubles once more."""

# (narrow, wide): the narrow dtype is at least as fast
_ORDER = (
    ("tf32", "float32"), ("float16", "float32"), ("bfloat16", "float32"),
    ("int8", "float16"), ("int8", "bfloat16"),
    ("float8", "float16"), ("float8", "bfloat16"), ("float4", "float8"),
)  # fmt: skip
# (narrow, wide): both on the matrix units, the narrow one half as wide
_HALVES = (
    ("float16", "tf32"), ("bfloat16", "tf32"), ("int8", "float16"), ("int8", "bfloat16"),
    ("float8", "float16"), ("float8", "bfloat16"), ("float4", "float8"),
)  # fmt: skip

# Fastest link of a kind today, per direction and GPU or NIC, with some room. Twice
# as much is the sum of both directions, eight times as much is bits for bytes.
_LINK_LIMITS: Mapping[LinkKind, tuple[float, str]] = {
    LinkKind.NVLINK: (450e9, "the bridge of an H200 NVL has 450 GB/s"),
    LinkKind.NVSWITCH: (900e9, "NVLink 5 has 900 GB/s"),
    LinkKind.XGMI: (600e9, "an MI355X has 535.5 GB/s"),
    LinkKind.GAUDI_ETHERNET: (525e9, "21 ports of 200 Gb/s have 525 GB/s"),
    LinkKind.NEURONLINK: (640e9, "NeuronLink-v3 has 640 GB/s"),
    LinkKind.ICI: (600e9, "a TPU v5p has 600 GB/s"),
    LinkKind.HCCS: (196e9, "an Ascend 910B has 196 GB/s"),
    LinkKind.PCIE: (64e9, "PCIe 5.0 x16 has 63 GB/s"),
    LinkKind.C2C: (450e9, "NVLink-C2C has 450 GB/s"),
}
_NIC_LIMIT = (120e9, "a NIC of 800 Gb/s has 100 GB/s; are these bits?")

_RANGES: Mapping[str, tuple[float, float]] = {
    "mem_bytes": (1e8, 1e13),
    "mem_bytes_per_s": (1e9, 5e13),
    "l2_bytes": (1e4, 2e9),
    "fabric_bytes_per_s": (1e9, 1e12),
    "tdp_w": (1, 5000),
    "launch_s": (1e-8, 1e-2),
}
_PEAK_RANGE = (1e9, 1e17)
_CLOCK_RANGE = (1e8, 1e10)
_LATENCY_LIMIT_S = 1e-2


def check_device(device: Device, exceptions: Mapping[str, str], file: str) -> None:
    """Raise :class:`DataFileError` for the first thing in ``device`` that cannot be.

    ``exceptions``: dtype -> why it breaks the order of dtypes.
    """
    for name, (low, high) in _RANGES.items():
        value = getattr(device, name)
        if value is not None and not low <= value <= high:
            _fail(file, name, f"is {value:g}", f"between {low:g} and {high:g}")
    for name in ("peak_flops_per_s", "vector_flops_per_s", "fp16_accumulate_flops_per_s", "clock_hz"):
        low, high = _CLOCK_RANGE if name == "clock_hz" else _PEAK_RANGE
        for key, value in (getattr(device, name) or {}).items():
            if not low <= value <= high:
                _fail(file, f"{name}.{key}", f"is {value:g}", f"between {low:g} and {high:g}")
    if not device.peak_flops_per_s:
        _fail(file, "peak_flops_per_s", "is empty", "a table with one dtype at least")
    for dtype in device.vector_dtypes:
        if dtype not in device.peak_flops_per_s:
            _fail(file, "vector_dtypes", f"names {dtype}, which has no peak", "dtypes of peak_flops_per_s")
    for dtype, rate in device.vector_flops_per_s.items():
        if rate > device.peak_flops_per_s.get(dtype, 0):
            _fail(file, f"vector_flops_per_s.{dtype}", f"is {rate:g}", f"at most peak_flops_per_s.{dtype}")
    _check_identity(device, file)
    _check_order(device, exceptions, file)


def _check_identity(device: Device, file: str) -> None:
    for dtype, fma in (device.fma_per_unit or {}).items():
        unit = "vector" if dtype in device.vector_dtypes else "matrix"
        clock_hz = None if device.clock_hz is None else device.clock_hz.get(unit)
        peak = device.peak_flops_per_s.get(dtype)
        for needed, name in (
            (device.compute_units, "compute_units"),
            (clock_hz, f"clock_hz.{unit}"),
            (peak, f"peak_flops_per_s.{dtype}"),
        ):
            if needed is None:
                _fail(file, f"fma_per_unit.{dtype}", f"is given without {name}", "given together with it")
        assert device.compute_units is not None and clock_hz is not None and peak is not None
        identity = device.compute_units * clock_hz * fma * 2
        ratio = peak / identity
        if abs(ratio - 1) > IDENTITY_TOLERANCE:
            sparse = "; twice: a figure for 2:4 sparsity?" if abs(ratio - 2) < 0.1 else ""
            _fail(
                file,
                f"peak_flops_per_s.{dtype}",
                f"is {format_flops_per_s(peak)}{sparse}",
                f"within {IDENTITY_TOLERANCE:.0%} of {device.compute_units} units x {clock_hz / 1e6:g} MHz"
                f" x {fma:g} FMA x 2 = {format_flops_per_s(identity)}",
            )


def _check_order(device: Device, exceptions: Mapping[str, str], file: str) -> None:
    peaks = device.peak_flops_per_s
    for dtype in exceptions:
        if dtype not in peaks:
            _fail(file, f"exceptions.{dtype}", "has no peak", "a dtype of peak_flops_per_s")
    for narrow, wide in _ORDER:
        if narrow in peaks and wide in peaks and narrow not in exceptions and peaks[narrow] < peaks[wide]:
            _fail(
                file,
                f"peak_flops_per_s.{narrow}",
                f"is {format_flops_per_s(peaks[narrow])}, slower than {wide}",
                f"at least {format_flops_per_s(peaks[wide])}, or declared with its reason in [exceptions]",
            )
    matrix = [dtype for dtype in peaks if dtype not in device.vector_dtypes and dtype not in exceptions]
    for narrow, wide in _HALVES:
        if narrow in matrix and wide in matrix and peaks[narrow] > DOUBLING_LIMIT * peaks[wide]:
            _fail(
                file,
                f"peak_flops_per_s.{narrow}",
                f"is {peaks[narrow] / peaks[wide]:.1f} times {wide}; a figure for 2:4 sparsity?",
                f"at most twice {wide}, or declared with its reason in [exceptions]",
            )


def check_server(server: Server, file: str) -> None:
    """Raise :class:`DataFileError` for the first thing in ``server`` that cannot be."""
    for name in ("scale_up", "pcie", "nic"):
        link: Link | None = getattr(server, name)
        if link is None:
            continue
        if link.kind.is_network != (name == "nic"):
            networks = ", ".join(sorted(NETWORK_KINDS))
            right = f"a network ({networks})" if name == "nic" else "no network's kind"
            _fail(file, f"{name}.kind", f"is {link.kind}", right)
        limit, why = _LINK_LIMITS.get(link.kind, _NIC_LIMIT)
        if link.bytes_per_s > 1.01 * limit:
            rate = format_bandwidth(link.bytes_per_s)
            _fail(file, f"{name}.bytes_per_s", f"is {rate}", f"one direction, in bytes: {why}")
        if link.latency_s > _LATENCY_LIMIT_S:
            right = f"seconds, at most {_LATENCY_LIMIT_S:g}"
            _fail(file, f"{name}.latency_s", f"is {link.latency_s:g}", right)
    if (server.pcie_gpus_sharing or 1) > server.gpus:
        _fail(file, "pcie_gpus_sharing", f"is {server.pcie_gpus_sharing}", f"at most gpus = {server.gpus}")
    _check_mesh(server, file)


def _check_mesh(server: Server, file: str) -> None:
    """The wires of the least wired GPU carry the rate that ``scale_up`` states for each."""
    link = server.scale_up
    if link is None or link.pair_bytes_per_s is None:
        if server.gpu_links:
            _fail(file, "gpu_links", "has no rate per wire", "given together with scale_up.pair_bytes_per_s")
        return
    wires = dict.fromkeys(range(server.gpus), 0)
    for first, second, count in server.gpu_links:
        if first == second or first not in wires or second not in wires or count < 1:
            right = f"[GPU, other GPU, wires] with GPUs below {server.gpus}"
            _fail(file, "gpu_links", f"has [{first}, {second}, {count}]", right)
        wires[first] += count
        wires[second] += count
    least = min(wires.values()) if server.gpu_links else server.gpus - 1
    expected = least * link.pair_bytes_per_s
    if abs(link.bytes_per_s / expected - 1) > IDENTITY_TOLERANCE if expected else True:
        _fail(
            file,
            "scale_up.bytes_per_s",
            f"is {format_bandwidth(link.bytes_per_s)}",
            f"{least} wires x {format_bandwidth(link.pair_bytes_per_s)} = {format_bandwidth(expected)}",
        )


def check_cluster(cluster: Cluster, file: str) -> None:
    """Raise :class:`DataFileError` if the device cannot stand in the servers."""
    fabric, link = cluster.device.fabric_bytes_per_s, cluster.server.scale_up
    if fabric is not None and link is not None and link.bytes_per_s > (1 + IDENTITY_TOLERANCE) * fabric:
        _fail(
            file,
            f"server {cluster.server.id}: scale_up.bytes_per_s",
            f"is {format_bandwidth(link.bytes_per_s)}; the sum of both directions?",
            f"at most the {format_bandwidth(fabric)} that {cluster.device.id} has in one direction",
        )
    if cluster.utilisation is not None and cluster.utilisation > 1:
        _fail(file, "utilisation", f"is {cluster.utilisation:g}", "a share between 0 and 1")


def _fail(file: str, key: str, wrong: str, right: str) -> NoReturn:
    raise DataFileError(f"{file}: {key} {wrong}; it must be {right}")
