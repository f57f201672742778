"""Devices, servers and clusters: one TOML file each, every number with its source.

Names are file stems; ``devices/h100-sxm.toml`` is ``"h100-sxm"``. A path that ends
in ``.toml`` (or any existing file) is the user's own file in the same format. A
cluster names its ``device`` and ``server``, from here or by a path beside it, or
holds them inline as ``[device]`` and ``[server]``. Files are read when asked for,
checked on reading and kept.

A device file::

    name = "NVIDIA H100 SXM5 80 GB"
    vendor = "NVIDIA"
    arch = "Hopper"
    confidence = "verified"         # verified, consistent, recalled, disputed, measured
    mem_bytes = 80e9
    mem_bytes_per_s = 3.35e12
    launch_s = 3e-6                 # fixed time of a kernel
    source = "where figures are from that [sources] does not name"

    [peak_flops_per_s]              # dense, FP32 accumulation
    float32 = 66.9e12
    bfloat16 = 989.4e12

    [sources]                       # field = where its figure is from
    mem_bytes_per_s = "NVIDIA H100 datasheet"

A cluster file may tell what one server costs::

    price_per_hour_usd = 24.48      # of a whole server, on demand
    price_source = "where it is listed"
    price_date = "2025-11"          # when: a year, a month or a day
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from graphcost.device_db._aliases import CLUSTER_ALIASES, DEVICE_ALIASES
from graphcost.device_db._build import build_device, build_server
from graphcost.device_db._checks import check_cluster
from graphcost.device_db._price import PRICE_KEYS, read_price
from graphcost.device_db._reader import SOURCE_KEYS, Table, parse, read_sources
from graphcost.errors import DataFileError, UnknownNameError
from graphcost.hardware import Cluster, Device, Server
from graphcost.registry import did_you_mean

__all__ = [
    "CLUSTER_ALIASES", "DEVICE_ALIASES", "cluster_names", "device_names", "load_cluster", "load_device",
    "load_server", "server_names",
]  # fmt: skip

_CLUSTER_KEYS = ("id", "device", "server", "max_servers", "utilisation", "notes", *PRICE_KEYS, *SOURCE_KEYS)

T = TypeVar("T", Device, Server, Cluster)
Reference = str | PathLike[str]


@cache
def _stems(folder: str) -> tuple[str, ...]:
    entries = (entry.name for entry in (files(__name__) / folder).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in entries if name.endswith(".toml")))


def device_names() -> tuple[str, ...]:
    """Ids of the database's devices, sorted; no file is read."""
    return _stems("devices")


def server_names() -> tuple[str, ...]:
    """Ids of the database's servers, sorted; no file is read."""
    return _stems("servers")


def cluster_names() -> tuple[str, ...]:
    """Ids of the database's clusters, sorted; no file is read."""
    return _stems("clusters")


def load_device(name_or_path: Reference) -> Device:
    """The device of that name, or of a TOML file.

    Raises :class:`UnknownNameError` with the nearest name, :class:`DataFileError` for
    a file that cannot be read or does not hold together.

    >>> load_device("a100").mem_bytes_per_s
    2039000000000.0
    """
    return _load(name_or_path, "device", device_names(), DEVICE_ALIASES, _database_device, _device_file)


def load_server(name_or_path: Reference) -> Server:
    """The server of that name, or of a TOML file; raises as :func:`load_device`.

    >>> load_server("dgx-a100").node_network_bytes_per_s
    200000000000.0
    """
    return _load(name_or_path, "server", server_names(), {}, _database_server, _server_file)


def load_cluster(name_or_path: Reference) -> Cluster:
    """The cluster of that name, or of a TOML file; raises as :func:`load_device`.

    >>> load_cluster("aws-p3.16xlarge").device.id
    'v100-sxm2-16'
    """
    return _load(name_or_path, "cluster", cluster_names(), CLUSTER_ALIASES, _database_cluster, _cluster_file)


def _load(
    reference: Reference,
    kind: str,
    names: Iterable[str],
    aliases: Mapping[str, str],
    from_database: Callable[[str], T],
    from_file: Callable[[Path], T],
) -> T:
    if isinstance(reference, str):
        name = reference.lower()
        name = aliases.get(name, name)
        if name in names:
            return from_database(name)
        if not (reference.endswith(".toml") or Path(reference).is_file()):
            hint = did_you_mean(reference, (*names, *aliases))
            listing = "graphcost devices lists them; a file of your own ends in .toml"
            raise UnknownNameError(f"no {kind} named {reference!r}{hint} ({listing})")
    return from_file(Path(reference))


@cache
def _database_device(name: str) -> Device:
    file = f"devices/{name}.toml"
    return build_device(parse(_packaged(file), file), file, name)


@cache
def _database_server(name: str) -> Server:
    file = f"servers/{name}.toml"
    return build_server(parse(_packaged(file), file), file, name)


@cache
def _database_cluster(name: str) -> Cluster:
    file = f"clusters/{name}.toml"
    return _build_cluster(parse(_packaged(file), file), file, name, folder=None)


def _packaged(file: str) -> bytes:
    return (files(__name__) / file).read_bytes()


def _device_file(path: Path) -> Device:
    return build_device(parse(_read(path, "device"), str(path)), str(path), path.stem)


def _server_file(path: Path) -> Server:
    return build_server(parse(_read(path, "server"), str(path)), str(path), path.stem)


def _cluster_file(path: Path) -> Cluster:
    return _build_cluster(parse(_read(path, "cluster"), str(path)), str(path), path.stem, folder=path.parent)


def _read(path: Path, kind: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        right = f"a {kind} is a TOML file or a name that graphcost devices lists"
        raise DataFileError(f"{path}: {reason}; {right}") from error


def _build_cluster(data: Mapping[str, Any], file: str, default_id: str, folder: Path | None) -> Cluster:
    table = Table(data, file, _CLUSTER_KEYS)
    cluster_id = table.text("id", default_id)
    cluster = Cluster(
        id=cluster_id,
        device=_part(table, "device", folder, load_device, build_device),
        server=_part(table, "server", folder, load_server, build_server),
        sources=read_sources(data, file, "", inline=("device", "server", *PRICE_KEYS)),
        max_servers=table.optional_integer("max_servers"),
        utilisation=table.optional_number("utilisation"),
        price=read_price(table),
        notes=table.text("notes", ""),
    )
    check_cluster(cluster, file)
    return cluster


def _part(
    table: Table,
    key: str,
    folder: Path | None,
    load: Callable[[Reference], T],
    build: Callable[[Mapping[str, Any], str, str, str], T],
) -> T:
    """A cluster's device or server: a name, a path relative to the file, or an inline table."""
    value = table.data.get(key)
    if isinstance(value, dict):
        outer = {"source": table.data["source"]} if "source" in table.data else {}
        return build({**outer, **value}, table.file, f"{table.data.get('id', Path(table.file).stem)}-{key}", key)
    if not isinstance(value, str):
        table.fail(key, f"is {value!r}, but it must be a name, a .toml file or a table")
    beside = folder is not None and value.endswith(".toml")
    try:
        return load(folder / value if beside and folder is not None else value)
    except UnknownNameError as error:
        raise DataFileError(f"{table.file}: {key}: {error}") from error
