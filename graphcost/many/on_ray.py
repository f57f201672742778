"""Processes of a Ray cluster: the running one (``RAY_ADDRESS``, ``ray start``), else one of this machine.

A lost worker, or a lost node with all its workers, is Ray's to notice: it runs the task again elsewhere, up to
``RETRIES`` times (Ray's own default). Nodes of a running cluster need graphcost, and the caller's folder under the
same path.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphcost.errors import UsageError, WorkerLostError
from graphcost.many.carried import guarded

RETRIES = 3
"""Times that Ray runs an item again whose process died."""

_OBJECT_STORE_BYTES = 128 << 20
"""Room for models' names and results; Ray would set a third of the machine's memory aside."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning about Ray's future
}
"""Environment of the cluster that is started here, where the user's says nothing else."""

_PRINTING = "print_to_stdstream"
"""A name inside Ray; where another version has none, its words come through."""


def run(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, *, apart: bool
) -> Iterator[tuple[int, Any]]:
    """A ``graphcost.many.Backend``. Raises ``UsageError`` without Ray, or where no cluster is reached."""
    if find_spec("ray") is None:
        raise UsageError("--backend ray needs Ray, which is not installed: pip install 'graphcost[ray]'")
    with _cluster(workers):
        yield from _results(function, items, workers, apart)


def _results(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, apart: bool
) -> Iterator[tuple[int, Any]]:
    """At most ``workers`` items are Ray's at a time; the next is handed over as one comes back."""
    import ray

    # A process that ends after one call has run nothing of this caller's before.
    task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=1 if apart else 0)(_one)
    here = (str(Path.cwd()), [str(Path(folder).absolute()) for folder in sys.path])
    under_way: dict[Any, int] = {}
    rest = iter(range(len(items)))

    def hand_over() -> None:
        index = next(rest, None)
        if index is not None:
            under_way[task.remote(pickle.dumps((function, items[index])), *here)] = index

    try:
        for _ in range(workers):
            hand_over()
        while under_way:
            (ready, *_), _ = ray.wait(list(under_way), num_returns=1)
            index = under_way.pop(ready)
            hand_over()
            yield index, _received(ready)
    finally:
        for left in under_way:  # nobody waits for them any more
            ray.cancel(left, force=True)


def _received(ready: Any) -> Any:
    """A result; Ray's word that no process could make it is an error like another."""
    import ray
    from ray.exceptions import NodeDiedError, ObjectLostError, OutOfMemoryError, RayError, WorkerCrashedError

    try:
        return ray.get(ready)
    except (WorkerCrashedError, OutOfMemoryError, NodeDiedError, ObjectLostError) as error:
        return WorkerLostError(
            f"its Ray worker died, and died again each of the {RETRIES} times that Ray tried it again "
            f"({type(error).__name__}); most often a node has run out of memory"
        )
    except RayError as error:
        return RuntimeError(str(error).strip().splitlines()[-1])  # above it, frames


def _one(job: bytes, folder: str, path: Sequence[str]) -> Any:
    """In a worker: relative paths and names of modules mean what they mean to the caller."""
    try:
        os.chdir(folder)
    except OSError as error:
        return UsageError(
            f"--backend ray: node {socket.gethostname()} has no folder {folder} ({error.strerror}); models must lie "
            "under the same path on every node"
        )
    sys.path.extend(one for one in path if one not in sys.path)
    function, item = pickle.loads(job)
    return guarded(function, item)


@contextmanager
def _cluster(workers: int) -> Iterator[None]:
    """A connection for the block; a cluster started here ends with it, one that was there goes on."""
    with _quiet():
        import ray

        if ray.is_initialized():
            yield
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        fresh = {
            "num_cpus": workers, "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False,
            "_system_config": {"task_oom_retries": RETRIES},  # Ray would try for ever
        }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                try:
                    ray.init(**options, **fresh)
                except ValueError:  # there is a cluster, whose size is not ours to choose
                    ray.init(**options)
            except (ConnectionError, ValueError, RuntimeError, OSError) as error:
                raise UsageError(f"--backend ray: no cluster to work on ({' '.join(str(error).split())})") from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing from Ray on stdout or stderr, nothing reported to anybody."""
    added = {name: value for name, value in _QUIET.items() if name not in os.environ}
    os.environ.update(added)
    from ray._private import worker

    # What Ray retries it prints on stdout, which belongs to results; no option of its own stops that.
    printing = getattr(worker, _PRINTING, None)
    if printing is not None:
        setattr(worker, _PRINTING, lambda *_, **__: None)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        if printing is not None:
            setattr(worker, _PRINTING, printing)
