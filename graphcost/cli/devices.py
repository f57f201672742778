"""``graphcost devices``: the database, every number with its source."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import text_width, write_result
from graphcost.device_db import cluster_names, device_names, load_cluster, load_device
from graphcost.errors import UnknownNameError
from graphcost.hardware import Cluster, Device
from graphcost.registry import did_you_mean
from graphcost.report.devices import cluster_rows, clusters_table, describe, device_rows, devices_table


@click.command(
    "devices",
    epilog=examples(
        "graphcost devices",
        "graphcost devices h100-sxm",
        "graphcost devices dgx-a100 --format json",
    ),
)
@click.argument("name", required=False, shell_complete=completing.hardware)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@shared.shared_flags
def command(name: str | None, form: str, quiet: bool, debug: bool) -> int:
    """List devices and clusters, or show NAME (a device, a cluster, or a TOML file) with its sources."""
    if name is None:
        devices = [load_device(entry) for entry in device_names()]
        clusters = [load_cluster(entry) for entry in cluster_names()]
        if form == "json":
            data = {
                "schema_version": 1,
                "command": "devices",
                "devices": device_rows(devices),
                "clusters": cluster_rows(clusters),
            }
            write_result(json.dumps(data, indent=2))
        else:
            width = text_width()
            write_result(devices_table(devices, width=width) + "\n" + clusters_table(clusters, width=width))
        return 0
    found = _find(name)
    if form == "json":
        kind = "device" if isinstance(found, Device) else "cluster"
        write_result(json.dumps({"schema_version": 1, "command": "devices", kind: _plain(asdict(found))}, indent=2))
    else:
        write_result(describe(found, width=text_width()))
    return 0


def _find(name: str) -> Device | Cluster:
    """A device or a cluster of that name; a file may be either."""
    if _is_cluster_file(name):
        return load_cluster(name)
    try:
        return load_device(name)
    except UnknownNameError:
        pass
    try:
        return load_cluster(name)
    except UnknownNameError:
        known = (*device_names(), *cluster_names())
        raise UnknownNameError(
            f"no device or cluster named {name!r}{did_you_mean(name, known)} (graphcost devices lists them)"
        ) from None


def _is_cluster_file(name: str) -> bool:
    """Whether ``name`` is a TOML file that names a device or a server, as a cluster does; False if unreadable."""
    try:
        return not {"device", "server"}.isdisjoint(tomllib.loads(Path(name).read_text("utf-8")))
    except (OSError, ValueError):
        return False


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "items"):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
