"""One function over many items, in this process or in several: order kept, errors are results.

``each`` is what ``--workers`` means. A worker that dies (the system's out-of-memory killer,
a crash in native code) loses nothing: what it was doing is done again in another process,
and reported as ``WorkerLostError`` if that dies too. One more backend is one more file and
its entry of ``BACKENDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from graphcost.errors import UsageError
from graphcost.many import local, on_ray
from graphcost.many.carried import GC_THRESHOLDS
from graphcost.many.local import available_workers
from graphcost.registry import did_you_mean

__all__ = ["BACKENDS", "GC_THRESHOLDS", "LOCAL", "available_workers", "each"]

T = TypeVar("T")
R = TypeVar("R")


class Backend(Protocol):
    """Runs ``function`` on items in other processes; yields (index, result or exception) in any order.

    No item is lost with its process, and every index comes once. ``apart``: processes started anew for
    this call, that have run nothing before.
    """

    def __call__(
        self, function: Callable[[Any], Any], items: Sequence[Any], workers: int, *, apart: bool
    ) -> Iterator[tuple[int, Any]]: ...


LOCAL = "local"
BACKENDS: Mapping[str, Backend] = {LOCAL: local.run, "ray": on_ray.run}
"""What ``--backend`` names."""


def each(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    workers: int = 1,
    backend: str = LOCAL,
    done: Callable[[T], None] | None = None,
    apart: bool = False,
) -> Iterator[R | Exception]:
    """``function`` of every item, in order; an exception stands where its result would.

    ``function``, items and results cross processes, so they pickle. ``done`` is called in this
    process as items end, in any order. ``apart``: in processes of their own even for one
    worker, started anew, so that modules imported here or by an earlier call play no part.
    One local worker that need not be apart is this process. Raises ``UsageError`` for an
    unknown backend, and where what it needs is not installed or not reached.
    """
    todo = list(items)
    if backend not in BACKENDS:
        raise UsageError(f"no backend named {backend!r}{did_you_mean(backend, BACKENDS)} ({', '.join(BACKENDS)})")
    workers = min(workers, len(todo))
    if todo and (workers > 1 or apart or backend != LOCAL):
        found_anyhow = BACKENDS[backend](function, todo, max(workers, 1), apart=apart)
        yield from _in_order(found_anyhow, todo, done)
        return
    for item in todo:
        found: R | Exception
        try:
            found = function(item)
        except Exception as error:
            found = error
        if done is not None:
            done(item)
        yield found


def _in_order(
    found: Iterator[tuple[int, Any]], items: Sequence[T], done: Callable[[T], None] | None
) -> Iterator[Any]:
    """Each result once all before it have been."""
    waiting: dict[int, Any] = {}
    following = 0
    for index, one in found:
        waiting[index] = one
        if done is not None:
            done(items[index])
        while following in waiting:
            yield waiting.pop(following)
            following += 1
