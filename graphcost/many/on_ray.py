"""Processes of a Ray cluster: the running one (``RAY_ADDRESS``, ``ray start``), else one of this machine.

A lost worker, or a lost node with all its workers, is Ray's to notice: it runs the task again elsewhere, up to
``RETRIES`` times (Ray's own default). Nodes of a running cluster need graphcost, and the caller's folder under the
same path.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from graphcost.errors import UsageError, WorkerLostError
from graphcost.many.carried import guarded
from graphcost.many.ray_cluster import RETRIES, ray_cluster


def run(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, *, apart: bool
) -> Iterator[tuple[int, Any]]:
    """A ``graphcost.many.Backend``. Raises ``UsageError`` without Ray, or where no cluster is reached."""
    with ray_cluster(workers, "--backend ray"):
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
