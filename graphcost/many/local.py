"""Processes of this machine, from joblib. A dead one breaks joblib's pool: what was under way is tried alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from graphcost.errors import WorkerLostError
from graphcost.many.carried import guarded


def available_workers() -> int:
    """Processors that this process may use, limits of containers included."""
    import joblib

    return int(joblib.cpu_count())


def run(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, *, apart: bool
) -> Iterator[tuple[int, Any]]:
    """A ``graphcost.many.Backend``."""
    if apart:
        _end_idle_workers()
    finished: set[int] = set()
    left = list(range(len(items)))
    try:
        while left:
            started: list[int] = []
            try:
                for index, found in _dispatch(function, items, left, workers, started):
                    finished.add(index)
                    yield index, found
            except BrokenProcessPool:
                pass
            for index in started:
                if index not in finished:  # under way when a worker died: one of these killed it
                    finished.add(index)
                    yield index, _alone(function, items, index)
            left = [index for index in left if index not in finished]
    finally:
        if apart:
            _end_idle_workers()


def _dispatch(
    function: Callable[[Any], Any], items: Sequence[Any], indices: Sequence[int], workers: int, started: list[int]
) -> Iterator[tuple[int, Any]]:
    """(index, result) as they come; raises ``BrokenProcessPool`` when a worker dies.

    ``started`` receives what was handed to workers.
    """
    import joblib

    # One worker would be this process: joblib takes two for the job of one.
    pool = joblib.Parallel(
        n_jobs=max(workers, 2), backend="loky", batch_size=1, pre_dispatch=workers, max_nbytes=None,
        return_as="generator_unordered",
    )  # fmt: skip

    def handed_out() -> Iterator[Any]:
        for index in indices:
            started.append(index)
            yield joblib.delayed(_tagged)(function, index, items[index])

    yield from pool(handed_out())


def _alone(function: Callable[[Any], Any], items: Sequence[Any], index: int) -> Any:
    try:
        ((_, found),) = _dispatch(function, items, [index], 1, [])
    except BrokenProcessPool:
        return WorkerLostError(
            "its worker process was killed, and killed again when it was tried alone; "
            "most often the machine has run out of memory"
        )
    return found


def _end_idle_workers() -> None:
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def _tagged(function: Callable[[Any], Any], index: int, item: Any) -> tuple[int, Any]:
    return index, guarded(function, item)
