"""Clusters that share a policy: averaged gradients are those of one cluster, and no run depends on timing."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from graphcost.cli.main import main  # noqa: E402  # what follows needs torch
from graphcost.errors import UsageError  # noqa: E402
from graphcost.sched.dl2.encoding import PolicySpec  # noqa: E402
from graphcost.sched.dl2.network import Network  # noqa: E402
from graphcost.sched.dl2.warm_up import Labels, cross_entropy_step  # noqa: E402
from graphcost.sim.learning import federated  # noqa: E402
from graphcost.sim.learning.federated import Federation, Meeting, Member, trainer_of  # noqa: E402
from graphcost.sim.learning.options import TrainingOptions  # noqa: E402
from graphcost.sim.learning.trainer import Trainer  # noqa: E402
from graphcost.sim.setup import Setup, SetupOptions, set_up  # noqa: E402

OPTIONS = TrainingOptions(
    hidden=8, warm_up_traces=2, warm_up_updates=20, updates=20, critic_updates=4, buffer=128, batch=32,
    validation_traces=1, validate_every=10, train_traces=7,
)  # fmt: skip


@pytest.fixture(scope="module")
def setup() -> Setup:
    return set_up(SetupOptions(workload="dl2-development", count=6, nodes=4))


class Twin(Member):
    """A cluster with the same traces and draws as every other."""

    stream = ()  # type: ignore[assignment]

    def traces(self, seeds: Sequence[int]) -> Sequence[int]:
        return seeds


def test_clusters_with_equal_samples_learn_what_one_learns(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of two equal gradients is that gradient: weights and curve are equal bit for bit."""
    monkeypatch.setattr(federated, "Member", Twin)
    doubled = replace(OPTIONS, clusters=2, batch=64, buffer=256, warm_up_traces=4)
    both, one = Federation(setup, doubled), Trainer(setup, OPTIONS)
    records = [replace(record, traces=record.traces // 2) for record in both.run()]
    assert records == list(one.run()) and {record.phase for record in records} == {"warm-up", "reinforce"}
    for name, weight in one.policy.layers.state_dict().items():
        assert torch.equal(weight, both.lead.policy.layers.state_dict()[name]), name


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_mean_over_parts_of_a_batch_is_the_gradient_of_the_batch(count: int) -> None:
    spec = PolicySpec(("a", "b"), window=3, hidden=8)
    random = np.random.default_rng(0)
    states = random.random((12, 3, spec.columns), np.float32)
    labels = Labels(states, np.ones((12, spec.actions), bool), random.integers(spec.actions, size=12))
    meeting = Meeting(count)
    alone, *networks = (Network(spec, value=False, seed=3) for _ in range(count + 1))

    def learned(network: Network, index: int | None) -> dict[str, torch.Tensor]:
        optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
        picked = np.arange(12)
        if index is not None:
            Member(index, meeting).join(optimizer)
            picked = picked[index::count]
        cross_entropy_step(network, optimizer, labels, picked)
        return dict(network.layers.state_dict())

    whole = learned(alone, None)
    with ThreadPoolExecutor(count) as threads:
        for weights in threads.map(learned, networks, range(count)):
            for name, weight in weights.items():
                torch.testing.assert_close(weight, whole[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("more", [{}, {"replay": "none", "network": "dense", "credit": "slot", "discount": 0.9}])
def test_networks_stay_equal_and_a_restored_run_goes_on_the_same(setup: Setup, more: dict[str, object]) -> None:
    options = replace(OPTIONS, clusters=3, batch=33, **more)  # type: ignore[arg-type]
    first = Federation(setup, options)
    assert sorted(seed for member in first.members for seed in member._train) == list(Trainer(setup, OPTIONS)._train)
    run = first.run()
    early = [next(run), next(run)]
    kept = deepcopy(first.contents())
    late = list(run)
    assert late and early[-1].phase == "warm-up" and late[-1].phase == "reinforce"
    for member in first.members[1:]:
        for part in ("policy", "value"):
            mine, lead = (getattr(one, part).layers.state_dict() for one in (member, first.lead))
            assert all(torch.equal(mine[name], lead[name]) for name in lead), part
    draws = {str(member._draw.bit_generator.state) for member in first.members}
    assert len(draws) == 3, "each cluster has random numbers of its own"
    second = Federation(setup, options)
    second.restore(kept)
    assert second.records == early and list(second.run()) == late
    assert first.progress_share == second.progress_share == 1.0


def test_a_cluster_that_fails_ends_them_all(setup: Setup) -> None:
    """Its own error comes out, and nobody waits for it."""
    broken = Federation(setup, replace(OPTIONS, clusters=2))

    def no_update(*_: object) -> None:
        raise ValueError("cannot go on")

    run = broken.run()
    next(run)
    broken.members[1]._imitate = no_update  # type: ignore[assignment, method-assign]
    with pytest.raises(ValueError, match="cannot go on"):
        next(run)


def test_one_cluster_is_no_federation(setup: Setup) -> None:
    assert type(trainer_of(setup, OPTIONS)) is Trainer
    assert type(trainer_of(setup, replace(OPTIONS, clusters=2))) is Federation


def test_a_state_of_another_number_of_clusters_is_refused(setup: Setup) -> None:
    one, two = Trainer(setup, OPTIONS), Federation(setup, replace(OPTIONS, clusters=2))
    with pytest.raises(UsageError, match="made with clusters 1, not 2; resume with the same"):
        two.restore(one.contents(), "p.pt")
    with pytest.raises(UsageError, match="made with clusters 2, not 1"):
        one.restore(two.contents(), "p.pt")
    before = one.contents()
    del before["options"]["clusters"]  # a file from before there were several
    one.restore(before, "p.pt")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--clusters", "0"], "--clusters 0: at least 1"),
        (["--clusters", "3"], "--batch 256: 3 clusters cannot share it equally"),
        (["--clusters", "4", "--train-traces", "3"], "--train-traces 3: at least one for each of 4 clusters"),
    ],
)
def test_what_cannot_be_divided(
    arguments: list[str], line: str, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path_factory.mktemp("policy") / "p.pt"
    assert main(["schedule", "train", "--count", "6", "--nodes", "4", "--output", str(output), *arguments]) == 2
    assert line in capsys.readouterr().err
