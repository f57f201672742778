"""An engine without Ray: the same training, its workers one after another in this process, a chunk a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcost.live.jobs import Checkpoint, LiveJob, Progress
from graphcost.live.training import Replica, local_loss

CHUNK = 10

RATE = 100.0
"""Samples per second of one worker."""


class InProcess:
    """``clock_s`` moves by one second a step; a job in ``doomed`` is given up in its first slot.

    n workers have n ** ``gain`` times the speed of one.
    """

    def __init__(self, jobs: Sequence[LiveJob], doomed: Sequence[str] = (), gain: float = 0.9) -> None:
        self.jobs = {job.job_id: job for job in jobs}
        self.kept: dict[str, Checkpoint] = {}
        self.doomed, self.gain = doomed, gain
        self.clock_s = 0.0
        self.held: list[dict[str, int]] = []
        self.tried: list[tuple[str, tuple[int, ...]]] = []
        self._losses: dict[str, list[float]] = {job.job_id: [] for job in jobs}

    def clock(self) -> float:
        return self.clock_s

    def run_slot(self, workers: Mapping[str, int]) -> Mapping[str, Progress]:
        self.held.append(dict(workers))
        return {name: self._run(self.jobs[name], count) for name, count in workers.items()}

    def samples_per_s(self, job: LiveJob, workers: Sequence[int]) -> Mapping[int, float]:
        self.tried.append((job.job_id, tuple(workers)))
        return {count: RATE * count**self.gain for count in workers}

    def losses(self, job_id: str) -> tuple[float, ...]:
        return tuple(self._losses[job_id])

    def _run(self, job: LiveJob, world: int) -> Progress:
        replica = Replica(job, self.kept.get(job.job_id))
        if job.job_id in self.doomed:
            return Progress(replica.step, 0, 0.0, 5, None, "process 7 died")
        before = replica.step
        while world and replica.step < min(job.steps, before + CHUNK):
            self._losses[job.job_id].append(split_step(replica, world))
            self.clock_s += 1
        self.kept[job.job_id] = replica.checkpoint()
        steps = replica.step - before
        end_s = self.clock_s if replica.step == job.steps else None
        run_s = job.batch * steps / (RATE * world**self.gain) if world else 0.0
        return Progress(replica.step, steps, run_s, 0, end_s, None)


def split_step(replica: Replica, world: int) -> float:
    """One step with the gradients of ``world`` workers averaged by hand; the loss over the whole batch."""
    import torch

    parameters = list(replica.network.parameters())
    losses = [local_loss(replica.network, replica.job, replica.step, rank, world) for rank in range(world)]
    each = [torch.autograd.grad(loss, parameters) for loss in losses]
    for index, parameter in enumerate(parameters):
        parameter.grad = torch.stack([gradients[index] for gradients in each]).mean(0)
    replica.take_step()
    return sum(float(loss.detach()) for loss in losses) / world
