"""DL2's parts by hand and against second oracles: encoding, networks, labels, replay, credit, exploration, files."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_worlds import SETTINGS, Rates, job, ring, served

from graphcost.errors import UnknownNameError
from graphcost.sched import SCHEDULERS, Allocation, Knowledge, SlotView
from graphcost.sched.dl2.encoding import PolicySpec, SlotEncoder
from graphcost.sched.dl2.exploration import Exploration
from graphcost.sched.features import ACTIONS, action_mask, state, window_of
from graphcost.sim import SimCluster, Simulation, simulate

torch = pytest.importorskip("torch")

from graphcost.sched.dl2.network import NETWORKS, Network, log_probabilities, probabilities  # noqa: E402
from graphcost.sched.dl2.policy import Policy  # noqa: E402
from graphcost.sched.dl2.warm_up import Labels, cross_entropy_step, labels_of, shuffled  # noqa: E402

RATES = Rates({"a": lambda w, p: float(w), "s": lambda w, p: w / (1 + w / p)})
JOBS = (job("r", ring("a"), 500, 2), job("s", served("s"), 900, 3, cap=4), job("t", served("s"), 90, 2, cap=3))
SPEC = PolicySpec(("a", "s"), window=3)


def view_of(nodes: int = 2, knows: Knowledge = Knowledge.NONE) -> SlotView:
    return Simulation(list(JOBS), SimCluster.equal(nodes, 4, 3), RATES, SETTINGS, knows=knows).view()


def test_importing_schedulers_needs_no_torch() -> None:
    code = "import sys, graphcost.sched.dl2.encoding, graphcost.cli.schedule; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 8), max_size=20), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_a_slot_kept_up_to_date_equals_one_encoded_anew(
    picks: list[int], nodes: int, window: int, starting_bundle: bool
) -> None:
    """The oracle: ``sched.features``, and trying every action on an allocation of its own."""
    spec = PolicySpec(("a", "s"), window, starting_bundle)
    view = view_of(nodes)
    slot = SlotEncoder(view, spec)
    done: list[tuple[str, int, int]] = []
    for pick in picks:
        whole = _replayed(view, spec, done)
        seen = window_of(view, whole, window)
        assert slot.window == seen
        assert np.array_equal(slot.state, state(seen, whole, spec.models, window))
        caps = action_mask(seen, whole, window)
        for action in range(3 * window):
            row, kind = divmod(action, 3)
            fits = bool(caps[action]) and _replayed(view, spec, done).add(seen[row], *ACTIONS[kind])
            assert slot.mask[action] == fits, (action, done)
        assert slot.mask[-1]
        possible = np.flatnonzero(slot.mask[:-1])
        if not possible.size:
            break
        action = int(possible[pick % possible.size])
        done.append((slot.window[action // 3].job_id, *ACTIONS[action % 3]))
        assert slot.take(action)
    before = slot.state.copy()
    assert not slot.take(spec.void) and np.array_equal(slot.state, before)


def _replayed(view: SlotView, spec: PolicySpec, done: list[tuple[str, int, int]]) -> Allocation:
    allocation = Allocation(view)
    if spec.starting_bundle:
        for one in view.jobs:
            allocation.add_bundle(one)
    by_id = {one.job_id: one for one in view.jobs}
    for job_id, workers, ps in done:
        assert allocation.add(by_id[job_id], workers, ps)
    return allocation


@pytest.mark.parametrize("kind", NETWORKS)
def test_probabilities(kind: str) -> None:
    network = Network(PolicySpec(("a", "s"), 3, network=kind, hidden=8), value=False, seed=1)
    slot = SlotEncoder(view_of(), SPEC)
    odds = probabilities(network, slot.state, slot.mask)
    assert odds.shape == (10,) and odds.sum() == pytest.approx(1) and not odds[~slot.mask].any() and odds.min() >= 0
    batched = log_probabilities(network(torch.from_numpy(slot.state[None])), torch.from_numpy(slot.mask[None]))
    assert batched.exp()[0].detach().numpy() == pytest.approx(odds, abs=1e-6)
    again = Network(PolicySpec(("a", "s"), 3, network=kind, hidden=8), value=False, seed=1)
    assert np.array_equal(probabilities(again, slot.state, slot.mask), odds)


def test_the_shared_network_does_not_mind_the_order_of_jobs() -> None:
    slot, order = SlotEncoder(view_of(), SPEC), [2, 0, 1]
    states = torch.from_numpy(np.stack((slot.state, slot.state[order])))
    for kind, same in (("shared", True), ("dense", False)):
        spec = PolicySpec(("a", "s"), 3, network=kind, hidden=8)
        logits = Network(spec, value=False, seed=0)(states).detach()
        values = Network(spec, value=True, seed=0)(states).detach()
        turned = logits[0, :-1].reshape(3, 3)[order].flatten()
        assert torch.allclose(turned, logits[1, :-1], atol=1e-6) == same
        assert torch.allclose(values[0], values[1], atol=1e-6) == same


def test_an_unknown_network() -> None:
    with pytest.raises(UnknownNameError, match="no network named 'denses'; did you mean 'dense'"):
        Network(PolicySpec(("a",), network="denses"), value=False, seed=0)


def test_labels_by_hand() -> None:
    """DRF on 2 nodes of 4 CPUs and 3 GPUs. First bundles r, s, t are the policy's own; then shares: r 1/6 (GPU),
    s and t 2/8 (CPU); r is next and at its cap of 2; then s (+ bundle: 4/8), t; the CPUs hold 1 + 3 bundles more.
    """
    view = view_of()
    decision = SCHEDULERS["drf"].decide(view, 0)
    made = [(state.copy(), mask, action) for state, mask, action in labels_of(view, decision, SPEC)]
    steps = [(one.job_id, one.workers, one.ps) for one in decision.increments]
    assert steps[:3] == [("r", 1, 0), ("s", 1, 1), ("t", 1, 1)]
    assert steps[3] == ("r", 1, 0) and made[0][2] == 0  # r is row 0: one worker
    assert steps[4] == ("s", 1, 1) and made[1][2] == 3 * 0 + 2  # r has left the window, s is row 0
    assert len(made) == len(steps) - 3 + bool(made[-1][2] == SPEC.void)


@pytest.mark.parametrize("name", ["drf", "optimus-exact", "pollux"])
def test_following_the_labels_gives_the_teachers_tasks(name: str) -> None:
    teacher = SCHEDULERS[name]
    view = view_of(nodes=3, knows=teacher.knows)
    decision = teacher.decide(view, 0)
    slot = SlotEncoder(view, SPEC)
    for seen, mask, action in labels_of(view, decision, SPEC):
        assert np.array_equal(seen, slot.state) and np.array_equal(mask, slot.mask) and mask[action]
        slot.take(action)
    given_to = {grant.job_id: (grant.workers, grant.ps) for grant in slot.allocation.decision().grants}
    assert given_to == {grant.job_id: (grant.workers, grant.ps) for grant in decision.grants}


def test_shuffling_moves_state_mask_and_action_together() -> None:
    view = view_of()
    parts = list(labels_of(view, SCHEDULERS["drf"].decide(view, 0), SPEC))
    labels = Labels(*(np.stack([part[index] for part in parts]) for index in range(3)))
    mixed = shuffled(labels, np.arange(len(labels)), np.random.default_rng(3))
    assert not np.array_equal(mixed.states, labels.states)
    for index, action in enumerate(labels.actions):
        turned = mixed.actions[index]
        if action == SPEC.void:
            assert turned == SPEC.void
            continue
        assert turned % 3 == action % 3
        assert np.array_equal(mixed.states[index, turned // 3], labels.states[index, action // 3])
        old, new = labels.masks[index, :-1].reshape(-1, 3), mixed.masks[index, :-1].reshape(-1, 3)
        assert np.array_equal(new[turned // 3], old[action // 3]) and new.sum() == old.sum()


def test_cross_entropy_learns_its_labels() -> None:
    """A dense network, since s and t look alike and only their positions tell whose turn it is."""
    view = view_of()
    parts = list(labels_of(view, SCHEDULERS["drf"].decide(view, 0), SPEC))
    labels = Labels(*(np.stack([part[index] for part in parts]) for index in range(3)))
    network = Network(PolicySpec(("a", "s"), window=3, network="dense"), value=False, seed=0)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    picked = np.arange(len(labels))
    losses = [cross_entropy_step(network, optimizer, labels, picked) for _ in range(200)]
    assert losses[-1] < 0.05 < losses[0]
    teacher = SCHEDULERS["drf"].decide(view, 0)
    learned = Policy(network).decide(view, 0)
    assert [(g.job_id, g.workers, g.ps) for g in learned.grants] == [
        (g.job_id, g.workers, g.ps) for g in teacher.grants
    ]


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("bundle", [False, True])
def test_a_policy_is_a_scheduler(sampled: bool, bundle: bool) -> None:
    """The simulator checks every grant; equal seeds give equal schedules."""
    spec = PolicySpec(("a", "s"), 2, bundle, hidden=8)
    dl2 = Policy(Network(spec, value=False, seed=4), sampled).scheduler()
    cluster = SimCluster.equal(2, 4, 3)
    limited = type(SETTINGS)(SETTINGS.slot_s, SETTINGS.scaling, SETTINGS.disturbance, max_slots=300)
    runs = [simulate(list(JOBS), cluster, dl2, RATES, limited, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] and runs[0].scheduler == "dl2" and runs[0].metrics.slots > 0
    if bundle:
        assert runs[0].metrics.finished == 3


def test_exploration_mends_bad_states() -> None:
    """s with 1 server: at 11 workers it would get a server; here without servers at all, since nothing is bundled."""
    view = view_of(nodes=6)
    slot = SlotEncoder(view, PolicySpec(("a", "s"), 3, starting_bundle=False))
    draw, counts = np.random.default_rng(0), np.array([10, 10, 10])
    always, never = Exploration(1.0), Exploration(0.0)
    assert always.override(slot, counts, draw) is None  # no job has anything: nothing is bad
    slot.take(3)  # s, row 1: a worker without a server
    assert always.override(slot, counts, draw) == 4 and never.override(slot, counts, draw) is None
    slot.take(4)
    assert always.override(slot, counts, draw) is None
    assert always.override(slot, np.array([100, 1, 100]), draw) in (4, 7)  # a server, of either job that has them
    half = [Exploration(0.4).override(slot, np.array([100, 1, 100]), draw) is not None for _ in range(2000)]
    assert np.mean(half) == pytest.approx(0.4, abs=0.04)
