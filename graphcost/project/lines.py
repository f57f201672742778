"""The line of a key in TOML text. ``tomllib`` gives values without places."""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")


def line_of(text: str, path: Path) -> int | None:
    """Line (from 1) where ``path`` is set, or of the nearest table around it; None where neither is found.

    Reads headers and keys line by line; keys inside inline tables count as their table.

    >>> line_of('a = 1\\n[[models]]\\nsource = "x"\\n[[models]]\\nbatch = 2', ("models", 1, "batch"))
    5
    """
    places = _places(text)
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            return places[path[:length]]
    return None


def _places(text: str) -> dict[Path, int]:
    places: dict[Path, int] = {}
    table: Path = ()
    seen: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header is not None:
            names = _names(header[2])
            if header[1] == "[[":
                table = (*names, seen[names])
                seen[names] += 1
            else:
                table = _inside(names, seen)
            places.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key is not None:
            places.setdefault((*table, *_names(key[1])), number)
    return places


def _inside(names: tuple[str, ...], seen: Counter[tuple[str, ...]]) -> Path:
    """``[models.dim]`` after ``[[models]]`` is in the last of them."""
    for length in range(len(names), 0, -1):
        if seen[names[:length]]:
            return (*names[:length], seen[names[:length]] - 1, *names[length:])
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(text))
