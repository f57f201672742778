"""A connection to Ray: to the running cluster (``RAY_ADDRESS``, ``ray start``), else to one of this machine."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from graphcost.errors import UsageError

RETRIES = 3
"""Times that Ray runs a task again whose process died."""

_OBJECT_STORE_BYTES = 128 << 20
"""Room for names, small models and results; Ray would set a third of the machine's memory aside."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning about Ray's future
}
"""Environment of the cluster that is started here, where the user's says nothing else."""

_PRINTING = "print_to_stdstream"
"""A name inside Ray; where another version has none, its words come through."""


@contextmanager
def ray_cluster(workers: int, asked: str) -> Iterator[bool]:
    """A connection for the block; True where the cluster is started here (``workers`` CPUs) and ends with it.

    ``asked``: what of the command line wants Ray. Raises ``UsageError`` without Ray, or where no cluster is reached.
    """
    if find_spec("ray") is None:
        raise UsageError(f"{asked} needs Ray, which is not installed: pip install 'graphcost[ray]'")
    with _quiet():
        import ray

        if ray.is_initialized():
            yield False
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        fresh = {
            "num_cpus": workers, "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False,
            "_system_config": {"task_oom_retries": RETRIES},  # Ray would try for ever
        }  # fmt: skip
        ours = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                try:
                    ray.init(**options, **fresh)
                except ValueError:  # there is a cluster, whose size is not ours to choose
                    ours = False
                    ray.init(**options)
            except (ConnectionError, ValueError, RuntimeError, OSError) as error:
                raise UsageError(f"{asked}: no cluster to work on ({' '.join(str(error).split())})") from error
        try:
            yield ours
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
