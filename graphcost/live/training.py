"""What a job computes: the same at any number of workers, up to the rounding of sums.

The samples of step k follow from the job's seed and k alone. Workers take neighbouring parts of them, as equal as
possible; a worker's loss is scaled so that the mean of the workers' gradients, which is what DistributedDataParallel
makes, is the gradient of the mean loss over the whole batch. All in float64: what splitting changes stays below
what a lost or a doubled step would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.live.jobs import Checkpoint, LiveJob

if TYPE_CHECKING:
    import torch


def torch_module() -> Any:
    """torch; raises ``UsageError`` where it is missing."""
    try:
        import torch
    except ImportError:
        raise UsageError("schedule live trains with torch: pip install 'graphcost[torch,ray]'") from None
    return torch


def shard(batch: int, rank: int, world: int) -> slice:
    """The samples of one of ``world`` workers.

    >>> [shard(10, rank, 3) for rank in range(3)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    return slice(batch * rank // world, batch * (rank + 1) // world)


def samples_of(job: LiveJob, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs [batch, features] and targets [batch, 1] of a step; the targets are a fixed function of the inputs."""
    torch = torch_module()
    fixed = torch.Generator().manual_seed(job.seed)
    slopes = torch.randn(job.features, 1, generator=fixed, dtype=torch.float64)
    drawn = torch.Generator().manual_seed((job.seed + 1) * 1_000_003 + step)  # a stream of its own for each step
    inputs = torch.randn(job.batch, job.features, generator=drawn, dtype=torch.float64)
    return inputs, torch.tanh(inputs @ slopes / job.features**0.5)


def network(job: LiveJob) -> torch.nn.Module:
    """The job's perceptron at its first weights."""
    torch = torch_module()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)
        return torch.nn.Sequential(
            torch.nn.Linear(job.features, job.hidden),
            torch.nn.Tanh(),
            torch.nn.Linear(job.hidden, job.hidden),
            torch.nn.Tanh(),
            torch.nn.Linear(job.hidden, 1),
        ).double()


def local_loss(forward: Any, job: LiveJob, step: int, rank: int, world: int) -> torch.Tensor:
    """A worker's loss: the mean over all ``world`` workers is the mean squared error over the whole batch."""
    inputs, targets = samples_of(job, step)
    own = shard(job.batch, rank, world)
    squared: torch.Tensor = (forward(inputs[own]) - targets[own]) ** 2
    return squared.sum() * world / job.batch


class Replica:
    """A job's weights and optimiser in one process."""

    def __init__(self, job: LiveJob, checkpoint: Checkpoint | None) -> None:
        torch = torch_module()
        self.job, self.network = job, network(job)
        self._optimizer = torch.optim.SGD(self.network.parameters(), lr=job.learning_rate, momentum=job.momentum)
        self.step = 0
        if checkpoint is not None:
            self.network.load_state_dict(dict(checkpoint.weights))
            self._optimizer.load_state_dict(dict(checkpoint.optimizer))
            self.step = checkpoint.step

    def advance(self, forward: Any, rank: int, world: int) -> torch.Tensor:
        """One step; the worker's own loss before it. ``forward``: the network, or what averages its gradients."""
        self._optimizer.zero_grad()
        loss = local_loss(forward, self.job, self.step, rank, world)
        loss.backward()
        self.take_step()
        return loss.detach()

    def take_step(self) -> None:
        """By the gradients that are there."""
        self._optimizer.step()
        self.step += 1

    def checkpoint(self) -> Checkpoint:
        """A copy that further steps leave alone."""
        from copy import deepcopy

        return Checkpoint(self.step, deepcopy(self.network.state_dict()), deepcopy(self._optimizer.state_dict()))
