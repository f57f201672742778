"""``graphcost devices``: lists, and one entry with all its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcost.hardware import Cluster, Device
from graphcost.report.tables import DEFAULT_WIDTH, fields_text, table_text
from graphcost.units import format_bandwidth, format_bits, format_bytes, format_flops_per_s, format_usd

_DTYPES = ("float32", "tf32", "float16", "bfloat16", "float8", "int8")


def device_rows(devices: Sequence[Device]) -> list[dict[str, Any]]:
    """Main figures of devices, in SI base units."""
    return [
        {
            "id": d.id,
            "name": d.name,
            "vendor": d.vendor,
            "arch": d.arch,
            "confidence": str(d.confidence),
            "peak_flops_per_s": dict(d.peak_flops_per_s),
            "mem_bytes": d.mem_bytes,
            "mem_bytes_per_s": d.mem_bytes_per_s,
            "tdp_w": d.tdp_w,
            "sources": dict(d.sources),
        }
        for d in devices
    ]


def cluster_rows(clusters: Sequence[Cluster]) -> list[dict[str, Any]]:
    """Main figures of clusters, in SI base units; rates in one direction."""
    return [
        {
            "id": c.id,
            "device": c.device.id,
            "server": c.server.id,
            "gpus_per_server": c.server.gpus,
            "scale_up": None
            if c.server.scale_up is None
            else {"kind": str(c.server.scale_up.kind), "bytes_per_s": c.server.scale_up.bytes_per_s},
            "network": {"kind": str(c.network.kind), "bytes_per_s": c.network.bytes_per_s},
            "pcie_bytes_per_s": c.server.pcie.bytes_per_s,
            "max_servers": c.max_servers,
            "utilisation": c.utilisation,
            "price_per_hour_usd": None if c.price is None else c.price.usd_per_hour,
            "sources": dict(c.sources),
        }
        for c in clusters
    ]


def devices_table(devices: Sequence[Device], *, width: int = DEFAULT_WIDTH) -> str:
    """Peaks in TFLOP/s, dense, FP32 accumulation."""
    columns = ["device", *_DTYPES, "memory", "bandwidth", "known"]
    rows = [
        [
            d.id,
            *(_tera(d, dtype) for dtype in _DTYPES),
            format_bytes(d.mem_bytes),
            format_bandwidth(d.mem_bytes_per_s),
            str(d.confidence),
        ]
        for d in devices
    ]
    head = "devices: peaks in TFLOP/s, dense, FP32 accumulation (details and sources: graphcost devices NAME)\n"
    return head + table_text(columns, rows, right=range(1, 9), width=width)


def clusters_table(clusters: Sequence[Cluster], *, width: int = DEFAULT_WIDTH) -> str:
    """Scale-up per GPU and network per server, one direction."""
    columns = ["cluster", "device", "GPUs", "scale-up", "per GPU", "network", "per server"]
    rows: list[list[str]] = []
    for c in clusters:
        up = c.server.scale_up
        rows.append(
            [
                c.id,
                c.device.id,
                str(c.server.gpus),
                str(up.kind) if up is not None else "pcie",
                format_bandwidth((up or c.server.pcie).bytes_per_s),
                str(c.network.kind),
                format_bits(c.network.bytes_per_s),
            ]
        )
    return "clusters: rates in one direction\n" + table_text(columns, rows, right=(2, 4, 6), width=width)


def describe(found: Device | Cluster, *, width: int = DEFAULT_WIDTH) -> str:
    """Everything known of one entry, with where it is from."""
    if isinstance(found, Device):
        fields: dict[str, Any] = {
            "device": found.id,
            "name": found.name,
            "vendor": found.vendor,
            "architecture": found.arch,
            "confidence": found.confidence,
            "peaks, dense": {dtype: format_flops_per_s(rate) for dtype, rate in found.peak_flops_per_s.items()},
            "memory": format_bytes(found.mem_bytes),
            "memory bandwidth": format_bandwidth(found.mem_bytes_per_s),
            "L2": "not known" if found.l2_bytes is None else format_bytes(found.l2_bytes),
            "compute units": found.compute_units if found.compute_units is not None else "not known",
            "board power": "not known" if found.tdp_w is None else f"{found.tdp_w:.0f} W",
            "sources": dict(found.sources),
        }
        return fields_text(fields)
    up = found.server.scale_up
    fields = {
        "cluster": found.id,
        "device": f"{found.device.id} ({found.device.name})",
        "server": found.server.id,
        "GPUs per server": found.server.gpus,
        "scale-up": "none (PCIe)"
        if up is None
        else f"{up.kind}, {format_bandwidth(up.bytes_per_s)} per GPU and direction",
        "PCIe": f"{format_bandwidth(found.server.pcie.bytes_per_s)} usable",
        "network": f"{found.server.nics} x {format_bits(found.server.nic.bytes_per_s)} {found.network.kind}",
        "power beside the GPUs": "not known"
        if found.server.overhead_w is None
        else f"{found.server.overhead_w:,.0f} W per server at full load",
        "price": "not known"
        if found.price is None
        else f"{format_usd(found.price.usd_per_hour)} per server and hour ({found.price.date})",
        "utilisation": "by operator class"
        if found.utilisation is None
        else f"{found.utilisation:.0%} of every resource",
        "sources": {
            **found.sources,
            **({"price": found.price.source} if found.price is not None else {}),
            **{f"server {k}": v for k, v in found.server.sources.items()},
        },
    }
    return fields_text(fields)


def _tera(device: Device, dtype: str) -> str:
    rate = device.peak_flops_per_s.get(dtype)
    return "-" if rate is None else format_flops_per_s(rate).split()[0] if rate < 1e15 else f"{rate / 1e12:.0f}"
