"""Worker processes: a Ray actor each, kept warm when a job gives it back (a new one imports torch, for seconds)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphcost.live.worker import Worker


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """One actor; ``told``: the promise of its process number."""

    actor: Any
    told: Any

    @property
    def pid(self) -> str:
        """The number of its process, once it has started; else that it has not."""
        import ray
        from ray.exceptions import RayError

        try:
            return str(ray.get(self.told, timeout=0))
        except RayError:
            return "(not started)"


class Pool:
    """``cpus``: what Ray sets aside for one; none on a cluster of our own, whose room the scheduler counts."""

    def __init__(self, cpus: int) -> None:
        import ray

        self._make = ray.remote(num_cpus=cpus, max_restarts=0, max_task_retries=0)(Worker)
        self._idle: list[Process] = []

    def warm(self, count: int, patience_s: float) -> None:
        """Start ``count`` processes and wait until they are ready, or patience is at its end."""
        import ray

        self._idle += [self._new() for _ in range(count)]
        ray.wait([process.told for process in self._idle], num_returns=len(self._idle), timeout=patience_s)

    def take(self) -> Process:
        """A warm one, or a new one."""
        return self._idle.pop() if self._idle else self._new()

    def _new(self) -> Process:
        actor = self._make.remote()
        return Process(actor, actor.ready.remote())

    def give_back(self, process: Process) -> None:
        """It leaves its group when it joins the next."""
        self._idle.append(process)

    def drop(self, process: Process) -> None:
        """End the process."""
        import ray

        ray.kill(process.actor, no_restart=True)
