"""What a job computes does not depend on how many workers compute it, nor on where it was interrupted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch
from in_process import split_step

from graphcost.live.jobs import LiveJob
from graphcost.live.training import Replica, local_loss, network, samples_of, shard

JOB = LiveJob("a", seed=3, steps=12, batch=10, features=4, hidden=8)


@given(batch=st.integers(1, 300), world=st.integers(1, 40))
def test_shards_are_the_batch_and_nearly_equal(batch: int, world: int) -> None:
    parts = [shard(batch, rank, world) for rank in range(world)]
    assert [index for part in parts for index in range(batch)[part]] == list(range(batch))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("world", [1, 2, 3, 7, 10])
def test_the_mean_of_the_workers_gradients_is_the_gradient_of_the_whole(world: int) -> None:
    """Against the mean squared error of the whole batch, by torch's own loss."""
    net = network(JOB)
    inputs, targets = samples_of(JOB, 5)
    whole = torch.autograd.grad(torch.nn.functional.mse_loss(net(inputs), targets), list(net.parameters()))
    each = [
        torch.autograd.grad(local_loss(net, JOB, 5, rank, world), list(net.parameters())) for rank in range(world)
    ]
    for index, wanted in enumerate(whole):
        torch.testing.assert_close(
            torch.stack([part[index] for part in each]).mean(0), wanted, rtol=1e-12, atol=1e-14
        )


def plain(job: LiveJob) -> tuple[dict[str, torch.Tensor], list[float]]:
    """The job in one process, by torch alone: final weights and the losses."""
    net = network(job)
    optimizer = torch.optim.SGD(net.parameters(), lr=job.learning_rate, momentum=job.momentum)
    losses = []
    for step in range(job.steps):
        inputs, targets = samples_of(job, step)
        loss = torch.nn.functional.mse_loss(net(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return net.state_dict(), losses


@settings(max_examples=30, deadline=None)
@given(worlds=st.lists(st.integers(1, 6), min_size=JOB.steps, max_size=JOB.steps), cuts=st.sets(st.integers(0, 11)))
def test_resized_and_interrupted_anyhow_it_ends_at_the_same_weights(worlds: list[int], cuts: set[int]) -> None:
    """At each cut the replica is thrown away, with a step that counts for nothing, and made from its checkpoint."""
    replica = Replica(JOB, None)
    losses = []
    for step, world in enumerate(worlds):
        if step in cuts:
            kept = replica.checkpoint()
            split_step(replica, world)
            replica = Replica(JOB, kept)
        losses.append(split_step(replica, world))
    weights, wanted = plain(JOB)
    torch.testing.assert_close(losses, wanted, rtol=1e-10, atol=0)
    for name, value in replica.network.state_dict().items():
        torch.testing.assert_close(value, weights[name], rtol=1e-10, atol=1e-13)


def test_a_lost_or_doubled_step_would_show() -> None:
    """What the tolerance above must not hide."""
    weights, losses = plain(JOB)
    short, _ = plain(LiveJob(**{**{name: getattr(JOB, name) for name in JOB.__slots__}, "steps": JOB.steps - 1}))
    assert max(float((weights[name] - short[name]).abs().max()) for name in weights) > 1e-4
    assert len(set(losses)) == JOB.steps


def test_seeds_make_jobs_and_steps_differ() -> None:
    other = LiveJob("b", seed=4, steps=12, batch=10, features=4, hidden=8)
    assert not torch.equal(samples_of(JOB, 0)[0], samples_of(JOB, 1)[0])
    assert not torch.equal(samples_of(JOB, 0)[0], samples_of(other, 0)[0])
    assert torch.equal(samples_of(JOB, 7)[0], samples_of(JOB, 7)[0])


def test_it_learns() -> None:
    _, losses = plain(LiveJob("c", seed=0, steps=150, batch=64))
    assert sum(losses[-10:]) < 0.05 * sum(losses[:10])
