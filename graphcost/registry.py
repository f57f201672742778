"""Named things: refuse duplicates, keep order, suggest the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Generic, TypeVar

from graphcost.errors import UnknownNameError

T = TypeVar("T")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known name, or an empty string."""
    lowered = {k.lower(): k for k in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[close[0]]!r}?" if close else ""


def import_members(package: str, path: Iterable[str]) -> tuple[ModuleType, ...]:
    """Import every public module of ``package`` (its ``__name__`` and ``__path__``) by name, so that each registers
    what it has: a new file there is all that a new entry takes."""
    found = sorted(module.name for module in iter_modules(path) if not module.name.startswith("_"))
    return tuple(import_module(f"{package}.{name}") for name in found)


class Registry(Mapping[str, T], Generic[T]):
    """An ordered mapping that can be added to, never overwritten.

    ``kind`` names the things in messages ("device"); ``hint`` says how to list
    them ("graphcost devices lists them").
    """

    def __init__(self, kind: str, hint: str = "") -> None:
        self.kind = kind
        self.hint = hint
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        """Register ``item``; a name that is taken is a defect, hence ``ValueError``."""
        if name in self._items:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._items[name] = item
        return item

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def find(self, name: str) -> T:
        """The item called ``name``; raises :class:`UnknownNameError` with the nearest name."""
        try:
            return self._items[name]
        except KeyError:
            hint = f" ({self.hint})" if self.hint else ""
            raise UnknownNameError(f"no {self.kind} named {name!r}{did_you_mean(name, self._items)}{hint}") from None
