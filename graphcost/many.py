"""One function over many items, in this process or in several: order kept, errors are results.

``each`` is what ``--workers`` means. A worker that dies (the system's out-of-memory killer,
a crash in native code) loses nothing: what it was doing is done once more, alone in a fresh
process, and reported as ``WorkerLostError`` if that dies too. Processes come from joblib;
one more backend is one more entry of ``BACKENDS``, by the name joblib knows it under.
"""

from __future__ import annotations

import gc
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from graphcost.errors import UsageError, WorkerLostError
from graphcost.registry import did_you_mean

T = TypeVar("T")
R = TypeVar("R")

BACKENDS: Mapping[str, str] = {"local": "loky"}
"""Name of ``--backend`` -> backend of joblib."""

GC_THRESHOLDS = (200_000, 50, 100)
"""A graph is many small objects without cycles; looking for cycles often costs a sixth of the time."""


def each(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    workers: int = 1,
    backend: str = "local",
    done: Callable[[T], None] | None = None,
    apart: bool = False,
) -> Iterator[R | Exception]:
    """``function`` of every item, in order; an exception stands where its result would.

    ``function``, items and results cross processes, so they pickle. ``done`` is called in this
    process as items end, in any order. ``apart``: in processes of their own even for one
    worker, started anew, so that modules imported here or by an earlier call play no part.
    Raises ``UsageError`` for an unknown backend.
    """
    todo = list(items)
    if backend not in BACKENDS:
        raise UsageError(f"no backend named {backend!r}{did_you_mean(backend, BACKENDS)} ({', '.join(BACKENDS)})")
    workers = min(workers, len(todo))
    if workers > 1 or (apart and todo):
        yield from _in_processes(function, todo, max(workers, 1), BACKENDS[backend], done, apart)
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


def available_workers() -> int:
    """Processors that this process may use, limits of containers included."""
    import joblib

    return int(joblib.cpu_count())


def _in_processes(
    function: Callable[[T], R],
    items: Sequence[T],
    workers: int,
    backend: str,
    done: Callable[[T], None] | None,
    apart: bool,
) -> Iterator[R | Exception]:
    if apart:
        _end_idle_workers()
    finished: set[int] = set()
    waiting: dict[int, R | Exception] = {}
    left = list(range(len(items)))
    following = 0

    def keep(index: int, found: R | Exception) -> Iterator[R | Exception]:
        """Note a result; yields it, and those behind it, once all before it have been."""
        nonlocal following
        finished.add(index)
        waiting[index] = found
        if done is not None:
            done(items[index])
        while following in waiting:
            yield waiting.pop(following)
            following += 1

    try:
        while left:
            started: list[int] = []
            try:
                for index, found in _dispatch(function, items, left, workers, backend, started):
                    yield from keep(index, found)
            except BrokenProcessPool:
                pass
            for index in started:
                if index not in finished:  # under way when a worker died: one of these killed it
                    yield from keep(index, _alone(function, items, index, backend))
            left = [index for index in left if index not in finished]
    finally:
        if apart:
            _end_idle_workers()


def _dispatch(
    function: Callable[[T], R],
    items: Sequence[T],
    indices: Sequence[int],
    workers: int,
    backend: str,
    started: list[int],
) -> Iterator[tuple[int, R | Exception]]:
    """(index, result) as they come; raises ``BrokenProcessPool`` when a worker dies.

    ``started`` receives what was handed to workers.
    """
    import joblib

    # One worker would be this process: joblib takes two for the job of one.
    pool = joblib.Parallel(
        n_jobs=max(workers, 2), backend=backend, batch_size=1, pre_dispatch=workers, max_nbytes=None,
        return_as="generator_unordered",
    )  # fmt: skip

    def handed_out() -> Iterator[Any]:
        for index in indices:
            started.append(index)
            yield joblib.delayed(_tagged)(function, index, items[index])

    yield from pool(handed_out())


def _alone(function: Callable[[T], R], items: Sequence[T], index: int, backend: str) -> R | Exception:
    try:
        ((_, found),) = _dispatch(function, items, [index], 1, backend, [])
    except BrokenProcessPool:
        return WorkerLostError(
            "its worker process was killed, and killed again when it was tried alone; "
            "most often the machine has run out of memory"
        )
    return found


def _end_idle_workers() -> None:
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def _tagged(function: Callable[[T], R], index: int, item: T) -> tuple[int, R | Exception]:
    gc.set_threshold(*GC_THRESHOLDS)
    return index, _guarded(function, item)


def _guarded(function: Callable[[T], R], item: T) -> R | Exception:
    """The result, or the exception in a form that crosses processes."""
    try:
        return function(item)
    except Exception as error:
        error.add_note(traceback.format_exc())  # frames stay behind; --debug shows this text
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """Without causes and frames, which hold what does not pickle."""
    error.__cause__ = error.__context__ = error.__traceback__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            plain.add_note(note)
        return plain
    return error
