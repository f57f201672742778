"""TOML tables -> the frozen types of ``graphcost.hardware``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcost.device_db._checks import check_device, check_server
from graphcost.device_db._curves import read_curves
from graphcost.device_db._reader import SOURCE_KEYS, Table, is_number, read_sources
from graphcost.hardware import DTYPES, PCIE_PEERS, Confidence, Device, FrozenMap, Link, LinkKind, Server
from graphcost.registry import did_you_mean

_DEVICE_KEYS = (
    "id", "name", "vendor", "arch", "confidence", "notes", "mem_bytes", "mem_bytes_per_s", "l2_bytes",
    "compute_units", "tdp_w", "launch_s", "fabric_bytes_per_s", "pcie_generation", "vector_dtypes",
    "peak_flops_per_s", "vector_flops_per_s", "fp16_accumulate_flops_per_s", "clock_hz", "fma_per_unit",
    "exceptions", "curves", *SOURCE_KEYS,
)  # fmt: skip
_SERVER_KEYS = (
    "id", "gpus", "nics", "pcie_gpus_sharing", "pcie_peer", "interference", "overhead_w", "host_factor", "curves",
    "gpu_links", "confidence", "notes", "scale_up", "pcie", "nic", *SOURCE_KEYS,
)  # fmt: skip
_LINK_KEYS = ("kind", "bytes_per_s", "latency_s", "in_network_reduce", "pair_bytes_per_s")


def build_device(data: Mapping[str, Any], file: str, default_id: str, where: str = "") -> Device:
    """A device from its table, checked; raises :class:`DataFileError`."""
    table = Table(data, file, _DEVICE_KEYS, where)
    peaks = table.numbers("peak_flops_per_s", DTYPES)
    if peaks is None:
        table.fail("peak_flops_per_s", "is missing; it must be a table, dtype = dense FLOP/s")
    device = Device(
        id=table.text("id", default_id),
        name=table.text("name"),
        vendor=table.text("vendor"),
        arch=table.text("arch"),
        peak_flops_per_s=peaks,
        mem_bytes=table.number("mem_bytes"),
        mem_bytes_per_s=table.number("mem_bytes_per_s"),
        launch_s=table.number("launch_s"),
        confidence=_confidence(table),
        sources=read_sources(data, file, where),
        vector_dtypes=_dtypes(table, "vector_dtypes"),
        vector_flops_per_s=table.numbers("vector_flops_per_s", DTYPES) or FrozenMap(),
        fp16_accumulate_flops_per_s=table.numbers("fp16_accumulate_flops_per_s", DTYPES) or FrozenMap(),
        l2_bytes=table.optional_number("l2_bytes"),
        compute_units=table.optional_integer("compute_units"),
        clock_hz=table.numbers("clock_hz", ("vector", "matrix")),
        fma_per_unit=table.numbers("fma_per_unit", DTYPES),
        fabric_bytes_per_s=table.optional_number("fabric_bytes_per_s"),
        pcie_generation=table.optional_integer("pcie_generation"),
        tdp_w=table.optional_number("tdp_w"),
        curves=read_curves(table, "curves"),
        notes=table.text("notes", ""),
    )
    check_device(device, table.texts("exceptions", DTYPES), _at(file, where))
    return device


def build_server(data: Mapping[str, Any], file: str, default_id: str, where: str = "") -> Server:
    """A server from its table, checked; raises :class:`DataFileError`."""
    table = Table(data, file, _SERVER_KEYS, where)
    scale_up = table.optional_table("scale_up", _LINK_KEYS)
    server = Server(
        id=table.text("id", default_id),
        gpus=table.integer("gpus"),
        scale_up=None if scale_up is None else _link(scale_up),
        pcie=_link(table.table("pcie", _LINK_KEYS)),
        nic=_link(table.table("nic", _LINK_KEYS)),
        nics=table.integer("nics"),
        confidence=_confidence(table),
        sources=read_sources(data, file, where),
        pcie_gpus_sharing=table.optional_integer("pcie_gpus_sharing"),
        pcie_peer=_pcie_peer(table),
        interference=table.optional_number("interference", zero=True),
        overhead_w=table.optional_number("overhead_w"),
        host_factor=table.optional_number("host_factor") or 1.0,
        curves=read_curves(table, "curves"),
        gpu_links=_gpu_links(table),
        notes=table.text("notes", ""),
    )
    check_server(server, _at(file, where))
    return server


def _at(file: str, where: str) -> str:
    return f"{file}, [{where}]" if where else file


def _link(table: Table) -> Link:
    kind = table.text("kind")
    known = tuple(member.value for member in LinkKind)
    if kind not in known:
        table.fail("kind", f"is {kind!r}{did_you_mean(kind, known) or '; the kinds are ' + ', '.join(known)}")
    return Link(
        kind=LinkKind(kind),
        bytes_per_s=table.number("bytes_per_s"),
        latency_s=table.number("latency_s", zero=True),
        in_network_reduce=table.flag("in_network_reduce"),
        pair_bytes_per_s=table.optional_number("pair_bytes_per_s"),
    )


def _confidence(table: Table) -> Confidence:
    value = table.text("confidence")
    known = tuple(member.value for member in Confidence)
    if value not in known:
        table.fail("confidence", f"is {value!r}; it must be one of {', '.join(known)}")
    return Confidence(value)


def _dtypes(table: Table, key: str) -> tuple[str, ...]:
    value = table.data.get(key, [])
    if not isinstance(value, list) or not all(dtype in DTYPES for dtype in value):
        table.fail(key, f"is {value!r}, but it must be a list of dtypes ({', '.join(DTYPES)})")
    return tuple(value)


def _pcie_peer(table: Table) -> str | None:
    value = table.text("pcie_peer", "") or None
    if value is not None and value not in PCIE_PEERS:
        table.fail("pcie_peer", f"is {value!r}; it must be one of {', '.join(PCIE_PEERS)}")
    return value


def _gpu_links(table: Table) -> tuple[tuple[int, int, int], ...]:
    value = table.data.get("gpu_links", [])
    if not isinstance(value, list) or not all(
        isinstance(row, list) and len(row) == 3 and all(is_number(item) and item == int(item) for item in row)
        for row in value
    ):
        table.fail("gpu_links", "must be a list of [GPU, other GPU, wires], whole numbers from 0")
    return tuple((int(first), int(second), int(wires)) for first, second, wires in value)
