"""Efficiencies by kernel class: one TOML file an architecture generation, with what it inherits.

A row holds the shares of a device's nominal rates that a class of kernels reaches:
``compute`` of the matrix peak, ``memory`` of the memory bandwidth. Rows under
``channels-last`` and ``inference`` stand in for those above them where the layout or the
step is that one; rows and rules under ``stack.NAME`` where the stack is. A file says which table
its numbers were fitted on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from graphcost.errors import DataFileError
from graphcost.hardware import Device
from graphcost.recipe import Layout, Stack

MOST = 2.5
"""No share is above it: cards clock over their boost, Winograd beats direct FLOPs, caches serve some traffic."""

FOLDER = "efficiency"
DEFAULT = "default"
FAMILIES: Mapping[str, str] = {
    "linear": "product", "bmm": "product", "attention": "product", "attention_backward": "product",
    "recurrent": "product",
}  # fmt: skip
"""Rows that ``scale`` treats as products; names that begin with ``conv`` are convolutions, the rest is memory."""


@dataclass(frozen=True, slots=True)
class Row:
    """Shares of the nominal rates; above 1 where a card clocks over its published boost.

    ``compute`` is of the matrix units' peak, ``fp32`` of the vector units' where products run on those.
    """

    name: str
    compute: float
    memory: float
    fp32: float


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers of one generation, one stack. ``is_fallback``: no file is for the device."""

    generation: str
    is_fallback: bool
    rows: Mapping[str, Row] = field(repr=False)
    last_rows: Mapping[str, Row] = field(repr=False)
    rules: Mapping[str, float] = field(repr=False)
    host: Mapping[str, float] = field(repr=False)

    def row(self, kind: str, *, channels_last: bool = False) -> Row:
        """The row called ``kind`` for a layout; raises ``DataFileError`` where the files have none."""
        try:
            return (self.last_rows if channels_last else self.rows)[kind]
        except KeyError:
            raise DataFileError(f"efficiency/{self.generation}.toml: no row {kind!r}") from None


@cache
def constants_of(device: Device, stack: Stack = Stack.TORCH_2, *, trains: bool = True) -> Constants:
    """The constants for ``device``: its id's file, else its architecture's, else the default's."""
    name = _generation(device)
    data = table(name or DEFAULT)
    other: Mapping[str, Any] = {} if trains else data.get("inference", {})
    last = Layout.CHANNELS_LAST.value
    rows = _merged(data["rows"], other.get("rows", {}))
    last_rows = _merged(_merged(rows, data.get(last, {})), other.get(last, {}))
    switched = data.get("stack", {}).get(str(stack), {})
    label = name or DEFAULT
    rows, last_rows = (_merged(some, switched.get("rows", {})) for some in (rows, last_rows))
    return Constants(
        generation=label,
        is_fallback=name is None,
        rows={key: _row(label, key, value) for key, value in rows.items()},
        last_rows={key: _row(label, f"{last}.{key}", value) for key, value in last_rows.items()},
        rules={**data["rules"], **other.get("rules", {}), **switched.get("rules", {})},
        host=host_constants(),
    )


@cache
def table(name: str) -> dict[str, Any]:
    """One file over what it inherits; ``scale`` multiplies inherited rows."""
    data = tomllib.loads(files("graphcost.engine").joinpath(FOLDER, f"{name}.toml").read_text("utf-8"))
    parent = data.get("inherits")
    return data if parent is None else _merged(_scaled(table(parent), data.get("scale", {})), data)


@cache
def host_constants() -> Mapping[str, float]:
    """Seconds of host time per launched operator and per parameter tensor (``host.toml``)."""
    text = files("graphcost.engine").joinpath("host.toml").read_text("utf-8")
    return MappingProxyType(tomllib.loads(text)["host"])


@cache
def generations() -> tuple[str, ...]:
    """Names of all files."""
    names = (entry.name for entry in files("graphcost.engine").joinpath(FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def _generation(device: Device) -> str | None:
    heads = {name: _head(name) for name in generations()}
    for name, head in heads.items():
        if any(fnmatchcase(device.id, pattern) for pattern in head.get("devices", ())):
            return name
    for name, head in heads.items():
        if head.get("arch") == device.arch:
            return name
    return None


def _head(name: str) -> dict[str, Any]:
    return tomllib.loads(files("graphcost.engine").joinpath(FOLDER, f"{name}.toml").read_text("utf-8"))


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``above`` over ``below``, table by table."""
    found = dict(below)
    for key, value in above.items():
        mine = found.get(key)
        found[key] = _merged(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return found


def family_of(kind: str) -> str:
    """``product``, ``convolution`` or ``memory``: what ``scale`` has one number for.

    >>> family_of("conv_1x1"), family_of("linear"), family_of("depthwise_3"), family_of("softmax")
    ('convolution', 'product', 'memory', 'memory')
    """
    return "convolution" if kind.startswith("conv") else FAMILIES.get(kind, "memory")


def _scaled(data: Mapping[str, Any], scale: Mapping[str, float]) -> dict[str, Any]:
    """All rows with ``compute`` times their family's factor and ``memory`` times that of memory."""
    rate = scale.get("memory", 1.0)

    def rows(some: Mapping[str, Any]) -> dict[str, Any]:
        return {kind: dict(_row_scaled(kind, values, scale, rate)) for kind, values in some.items()}

    last = Layout.CHANNELS_LAST.value
    other = data.get("inference", {})
    scaled = {**other, **{key: rows(other[key]) for key in ("rows", last) if key in other}}
    stacks = {name: {**one, "rows": rows(one.get("rows", {}))} for name, one in data.get("stack", {}).items()}
    return {**data, "rows": rows(data["rows"]), last: rows(data.get(last, {})), "inference": scaled, "stack": stacks}


def _row_scaled(
    kind: str, values: Mapping[str, Any], scale: Mapping[str, float], rate: float
) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        family = family_of(kind)
        matrix = scale.get(family, 1.0)
        if kind.startswith("attention"):  # fused kernels reach a new generation's rate later than products do
            matrix = scale.get("attention", matrix)
        vector = scale.get(f"fp32-{family}", scale.get(family, 1.0))
        factor = {"compute": matrix, "memory": rate, "fp32": vector}.get(key)
        yield key, value if factor is None else value * factor


def _row(file: str, name: str, values: Mapping[str, Any]) -> Row:
    try:
        compute = float(values["compute"])
        row = Row(name, compute, float(values["memory"]), float(values.get("fp32", compute)))
    except KeyError as error:
        raise DataFileError(f"efficiency/{file}.toml: row {name!r} lacks {error}") from error
    if not all(0 < share <= MOST for share in (row.compute, row.memory, row.fp32)):
        raise DataFileError(f"efficiency/{file}.toml: row {name!r} has a number that is no share: {values}")
    return row
