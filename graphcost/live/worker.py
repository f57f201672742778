"""One process of a job, a Ray actor: joins a gloo group, trains by DistributedDataParallel, hands out checkpoints.

An actor stays warm between jobs and groups. A peer that dies breaks the group's connections; whoever notices leaves
the group, so that the others notice too, and says so in what ``run`` returns. Other errors are raised.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

from graphcost.live.jobs import Checkpoint, Chunk, LiveJob, Lost
from graphcost.live.training import Replica, torch_module


class Worker:
    """What runs in the actor. A group has a number; a call for another group than the last joined finds it lost."""

    def __init__(self) -> None:
        self._group = -1
        self._store: Any = None
        self._lost = "it has no group yet"

    def ready(self) -> int:
        """The number of its process, once torch is there."""
        torch_module().set_num_threads(1)
        return os.getpid()

    def open(self) -> tuple[str, int]:
        """A meeting place for the group whose rank 0 this will be: host and port of a new store."""
        import ray
        from torch import distributed

        host = ray.util.get_node_ip_address()
        self._store = distributed.TCPStore(host, 0, is_master=True, wait_for_workers=False)
        return host, self._store.port

    def join(
        self, place: tuple[str, int], group: int, rank: int, world: int, job: LiveJob, checkpoint: Checkpoint | None,
        patience_s: float,
    ) -> None:  # fmt: skip
        """Become ``rank`` of ``world`` and load ``checkpoint`` (None: the first weights)."""
        torch = torch_module()
        from torch import distributed

        self._leave("it left its group")
        try:
            wait = timedelta(seconds=patience_s)
            store = self._store if rank == 0 else distributed.TCPStore(*place, is_master=False, timeout=wait)
            distributed.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=wait)
            self._replica = Replica(job, checkpoint)
            self._forward = torch.nn.parallel.DistributedDataParallel(self._replica.network)
        except RuntimeError as error:  # torch's word for a peer that is not there
            self._leave(_line(error))
            return
        self._group, self._rank, self._world = group, rank, world

    def run(self, group: int, until: int) -> Chunk | Lost:
        """Steps up to ``until``."""
        torch = torch_module()
        from torch import distributed

        if group != self._group:
            return Lost(self._lost)
        start_s = time.perf_counter()
        try:
            losses = []
            while self._replica.step < until:
                losses.append(self._replica.advance(self._forward, self._rank, self._world) / self._world)
            whole = torch.stack(losses)
            distributed.all_reduce(whole)
        except RuntimeError as error:
            self._leave(_line(error))
            return Lost(self._lost)
        took_s = time.perf_counter() - start_s
        return Chunk(tuple(whole.tolist()), took_s, self._replica.checkpoint() if self._rank == 0 else None)

    def _leave(self, why: str) -> None:
        from torch import distributed

        self._group, self._lost = -1, why
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
