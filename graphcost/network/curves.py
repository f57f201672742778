"""Measured collectives: pieces of ``a + f S/B`` by size, per fabric, operation and group size.

The files of ``curves/`` are written by ``python -m benchmarks.fit collectives`` and say
which table they come from, which sizes were held out, and both residuals. Nothing here
is monotone in the group size: a cube mesh of five V100 is slower than one of eight.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.collectives import moved_share
from graphcost.errors import DataFileError
from graphcost.hardware import Cluster, Link


@dataclass(frozen=True, slots=True)
class Piece:
    """``latency_s + share S / bytes_per_s`` for sizes up to ``upto_bytes``."""

    upto_bytes: float
    latency_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One operation of one group of ``ranks`` on one fabric; ``held_out_error`` is a mean share."""

    system: str
    collective: str
    ranks: int
    pieces: tuple[Piece, ...]
    source: str
    held_out_error: float

    def seconds(self, size_bytes: float, speed: float = 1.0) -> float:
        """Time for a payload of one rank; ``speed``: the link's rate over that of the measured one."""
        if size_bytes <= 0:
            return 0.0
        bounds = [piece.upto_bytes for piece in self.pieces]
        piece = self.pieces[min(bisect_left(bounds, size_bytes), len(bounds) - 1)]
        share = moved_share(self.collective, self.ranks)
        return piece.latency_s + share * size_bytes / (piece.bytes_per_s * speed)

    @property
    def bytes_per_s(self) -> float:
        """Bus bandwidth of large messages."""
        return self.pieces[-1].bytes_per_s


@dataclass(frozen=True, slots=True)
class System:
    """Curves of one fabric, and the machines that have it.

    A machine has it if its device is among ``devices`` and the link that its GPUs talk over
    is of ``kind``. ``peer``: for PCIe, how GPUs reach each other.
    """

    name: str
    kind: str
    bytes_per_s: float
    wire_bytes_per_s: float | None
    devices: tuple[str, ...]
    peer: str | None
    curves: tuple[Curve, ...]
    fit_error: float
    held_out_error: float

    def speed(self, link: Link) -> float:
        """Rate of ``link`` over that of the measured one; by the wire in a mesh, since a quad has fewer of them."""
        if self.wire_bytes_per_s is not None and link.pair_bytes_per_s is not None:
            return link.pair_bytes_per_s / self.wire_bytes_per_s
        return link.bytes_per_s / self.bytes_per_s

    def find(self, collective: str, ranks: int) -> Curve | None:
        """The curve of exactly this group."""
        return next((c for c in self.curves if c.collective == collective and c.ranks == ranks), None)


@cache
def systems() -> Mapping[str, System]:
    """Every fitted system by name; raises :class:`DataFileError` for a file that cannot be."""
    folder = files("graphcost.network").joinpath("curves")
    entries = (entry for entry in folder.iterdir() if entry.name.endswith(".toml"))
    found = (_read(entry.name, entry.read_text("utf-8")) for entry in entries)
    return {system.name: system for system in sorted(found, key=lambda system: system.name)}


def peer_link(cluster: Cluster) -> Link:
    """The link over which GPUs of one server talk: scale-up, else PCIe."""
    return cluster.server.scale_up or cluster.server.pcie


def system_for(cluster: Cluster) -> System | None:
    """The fitted fabric that this cluster's servers have; None if nobody measured it."""
    link = peer_link(cluster)
    for system in systems().values():
        same_peer = system.peer is None or system.peer == cluster.server.pcie_peer
        if system.kind == str(link.kind) and same_peer and cluster.device.id in system.devices:
            return system
    return None


def curve_for(cluster: Cluster, collective: str, ranks: int) -> tuple[Curve, float] | None:
    """The curve of ``ranks`` GPUs inside one server, and the speed of this link against the measured one."""
    system = system_for(cluster)
    curve = None if system is None else system.find(collective, ranks)
    if system is None or curve is None:
        return None
    return curve, system.speed(peer_link(cluster))


def _read(name: str, text: str) -> System:
    try:
        data = tomllib.loads(text)
        return _system(data)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise DataFileError(f"network/curves/{name}: {error!r}; write it with benchmarks.fit collectives") from error


def _system(data: Mapping[str, Any]) -> System:
    made = []
    for entry in data["curve"]:
        pieces = tuple(_pieces(entry["pieces"]))
        curve = Curve(
            data["system"],
            entry["collective"],
            entry["ranks"],
            pieces,
            entry.get("source", data["source"]),
            entry["held_out_error"],
        )
        _check(curve)
        made.append(curve)
    return System(
        data["system"], data["kind"], data["nominal_bytes_per_s"], data.get("wire_bytes_per_s"),
        tuple(data["devices"]), data.get("peer"), tuple(made), data["fit_error"], data["held_out_error"],
    )  # fmt: skip


def _pieces(rows: Iterable[Mapping[str, float]]) -> Iterable[Piece]:
    for row in rows:
        yield Piece(row.get("upto_bytes", float("inf")), row["latency_s"], row["bytes_per_s"])


def _check(curve: Curve) -> None:
    """Sizes rise, rates are rates, and a larger message never takes less time."""
    bounds = [piece.upto_bytes for piece in curve.pieces]
    if bounds != sorted(bounds) or bounds[-1] != float("inf") or curve.ranks < 2:
        raise ValueError(f"{curve.collective} of {curve.ranks}: pieces must rise to one without an end")
    if any(piece.latency_s < 0 or piece.bytes_per_s <= 0 for piece in curve.pieces):
        raise ValueError(f"{curve.collective} of {curve.ranks}: latencies and rates must be positive")
    for bound in bounds[:-1]:
        if curve.seconds(bound) > 1.001 * curve.seconds(bound * (1 + 1e-9)):
            raise ValueError(f"{curve.collective} of {curve.ranks}: time falls at {bound:g} bytes")
