"""Reading one TOML table: types, known keys, and a source for every number.

Every error is a :class:`DataFileError` that names the file, the key, what was
wrong and what would be right.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeGuard

from graphcost.errors import DataFileError
from graphcost.hardware import FrozenMap
from graphcost.registry import did_you_mean

SOURCE_KEYS = ("source", "sources")


def parse(data: bytes, file: str) -> dict[str, Any]:
    """The TOML text of ``file`` as a dictionary; raises :class:`DataFileError`."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DataFileError(f"{file}: not a text file in UTF-8; a TOML file must be") from error
    except tomllib.TOMLDecodeError as error:
        raise DataFileError(f"{file}: not valid TOML, {error}; mend that line") from error


def is_number(value: object) -> TypeGuard[float]:
    """Whether a TOML value is an integer or a float (a boolean is neither)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class Table:
    """One table of a file, read key by key.

    ``where`` is its place in the file ("" at the top). Keys outside ``known`` are
    refused at once, with the nearest known key.
    """

    def __init__(self, data: Mapping[str, Any], file: str, known: tuple[str, ...], where: str = "") -> None:
        self.data = data
        self.file = file
        self.where = where
        for key in data:
            if key not in known:
                hint = did_you_mean(key, known) or f"; the keys are {', '.join(known)}"
                raise DataFileError(f"{file}: unknown key {self._place(key)!r}{hint}")

    def _place(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def fail(self, key: str, what: str) -> NoReturn:
        """Raise :class:`DataFileError` about ``key``."""
        raise DataFileError(f"{self.file}: {self._place(key)} {what}")

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string; required unless a default is given."""
        value = self.data.get(key, default)
        if value is None:
            self.fail(key, "is missing; it must be a text")
        if not isinstance(value, str) or (value == "" and default is None):
            self.fail(key, f"is {value!r}, but it must be a text")
        return value

    def optional_number(self, key: str, *, zero: bool = False) -> float | None:
        """A positive finite number (or zero, if allowed), None if the key is absent."""
        value = self.data.get(key)
        if value is None:
            return None
        if not is_number(value):
            self.fail(key, f"is {value!r}, but it must be a number in the unit that its name ends with")
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            right = "zero or more" if zero else "more than zero"
            self.fail(key, f"is {value:g}, but it must be {right} and finite")
        return float(value)

    def number(self, key: str, *, zero: bool = False) -> float:
        """As :meth:`optional_number`, required."""
        value = self.optional_number(key, zero=zero)
        if value is None:
            self.fail(key, "is missing; it must be a number")
        return value

    def optional_integer(self, key: str) -> int | None:
        """A whole number above zero, None if the key is absent."""
        value = self.optional_number(key)
        if value is not None and not value.is_integer():
            self.fail(key, f"is {value:g}, but it must be a whole number")
        return None if value is None else int(value)

    def integer(self, key: str) -> int:
        """As :meth:`optional_integer`, required."""
        value = self.optional_integer(key)
        if value is None:
            self.fail(key, "is missing; it must be a whole number")
        return value

    def flag(self, key: str) -> bool:
        """A boolean, False if absent."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.fail(key, f"is {value!r}, but it must be true or false")
        return value

    def optional_table(self, key: str, known: tuple[str, ...]) -> Table | None:
        """The table below ``key``, None if absent."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fail(key, f"is {value!r}, but it must be a table")
        return Table(value, self.file, known, self._place(key))

    def table(self, key: str, known: tuple[str, ...]) -> Table:
        """As :meth:`optional_table`, required."""
        value = self.optional_table(key, known)
        if value is None:
            self.fail(key, "is missing; it must be a table")
        return value

    def numbers(self, key: str, known: tuple[str, ...]) -> FrozenMap[float] | None:
        """A table of positive numbers, None if absent."""
        table = self.optional_table(key, known)
        return None if table is None else FrozenMap({name: table.number(name) for name in table.data})

    def texts(self, key: str, known: tuple[str, ...]) -> FrozenMap[str]:
        """A table of texts, empty if absent."""
        table = self.optional_table(key, known)
        return FrozenMap({} if table is None else {name: table.text(name) for name in table.data})


def read_sources(data: Mapping[str, Any], file: str, where: str, inline: tuple[str, ...] = ()) -> FrozenMap[str]:
    """The sources of a table: field -> text; every number must have one.

    ``source`` covers whatever ``[sources]`` does not name; a name covers the whole
    table below it. ``inline`` tables bring their own.
    """
    prefix = f"{file}: {where}." if where else f"{file}: "
    named = {} if data.get("sources") is None else dict(_flatten(data["sources"], f"{prefix}sources"))
    fields = {key: value for key, value in data.items() if key not in (*SOURCE_KEYS, *inline)}
    paths = dict(_paths(fields))
    for key in named:
        if key not in paths:
            hint = did_you_mean(key, paths) or "; name a field of the same table"
            raise DataFileError(f"{prefix}sources.{key} speaks of a field that is not there{hint}")
    if "source" in data:
        text = data["source"]
        if not isinstance(text, str) or not text.strip():
            raise DataFileError(f"{prefix}source is {text!r}, but it must say where the figures are from")
        named["source"] = text
    elif not named:
        raise DataFileError(f"{prefix}sources is missing; say for every figure where it is from")
    for path, value in paths.items():
        covered = "source" in named or path in named or path.partition(".")[0] in named
        if _has_number(value) and not isinstance(value, dict) and not covered:
            raise DataFileError(f'{prefix}{path} has no source; add sources.{path} = "where it is from"')
    return FrozenMap(named)


def _flatten(table: object, place: str, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(table, dict):
        for key, value in table.items():
            yield from _flatten(value, place, f"{path}.{key}" if path else key)
    elif isinstance(table, str) and table.strip() and path:
        yield path, table
    else:
        raise DataFileError(f"{place} is {table!r} at {path or 'the top'}, but it must hold non-empty texts")


def _paths(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in fields.items():
        yield key, value
        if isinstance(value, dict):
            for below, deeper in value.items():
                yield f"{key}.{below}", deeper


def _has_number(value: object) -> bool:
    return any(map(_has_number, value)) if isinstance(value, list) else is_number(value)
