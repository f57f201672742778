"""DL2's training from end to end: warm-up from a teacher, then actor-critic on the simulator, trace after trace.

Everything that a step depends on is in ``contents()``: a run restored from there goes on bit for bit. It is whole
between the records that ``run`` yields, which come between traces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from graphcost.errors import UsageError
from graphcost.sched import SCHEDULERS
from graphcost.sched.dl2.actor_critic import ActorCritic, Loss
from graphcost.sched.dl2.all_actions import all_actions_step
from graphcost.sched.dl2.checkpoint import renamed
from graphcost.sched.dl2.encoding import PolicySpec
from graphcost.sched.dl2.exploration import Exploration
from graphcost.sched.dl2.network import Network, torch_module
from graphcost.sched.dl2.pace import PaceModel
from graphcost.sched.dl2.policy import Policy
from graphcost.sched.dl2.progress import ProgressModel
from graphcost.sched.dl2.replay import Replay
from graphcost.sched.dl2.warm_up import Labels, cross_entropy_step, shuffled
from graphcost.sim.learning.options import Record, TrainingOptions
from graphcost.sim.learning.rollout import FilledSlot, slots_of
from graphcost.sim.learning.sharing import Sharing
from graphcost.sim.learning.teaching import taught
from graphcost.sim.learning.validating import mean_jct_s
from graphcost.sim.setup import Setup, SetupOptions
from graphcost.sim.simulation import Simulation
from graphcost.sim.workloads import Split, seeds_of

WARM_UP, REINFORCE = "warm-up", "reinforce"


class Trainer:
    """One training run on one setup. ``run()`` trains; ``best_weights`` are the best on validation traces."""

    def __init__(self, setup: Setup, options: TrainingOptions, sharing: Sharing | None = None) -> None:
        torch = torch_module()
        self.setup, self.options, self._sharing = setup, options, sharing or Sharing()
        self.teacher = SCHEDULERS.find(options.teacher)
        models = sorted(setup.workload.models, key=lambda model: model.name)
        names = tuple(model.name for model in models)
        self.spec = PolicySpec(
            names,
            options.window,
            options.starting_bundle,
            options.placement,
            options.network,
            options.hidden,
        )
        self.policy = Network(self.spec, value=False, seed=options.seed)
        self.value = Network(self.spec, value=True, seed=options.seed + 1)
        self._warm = torch.optim.Adam(self.policy.parameters(), lr=options.warm_up_learning_rate)
        self.learner = ActorCritic(
            self.policy,
            self.value,
            torch.optim.Adam(self.policy.parameters(), lr=options.learning_rate),
            torch.optim.Adam(self.value.parameters(), lr=options.value_learning_rate),
            options.entropy,
            options.credit,
            options.critic,
        )
        self.replay = Replay(options.replay, options.buffer, self.spec)
        self.progress = ProgressModel(self.spec, options.value_learning_rate, options.seed + 2)
        caps = setup.workload.max_workers, setup.workload.max_ps
        self.pace = PaceModel(
            self.spec, options.value_learning_rate, options.seed + 2, models, caps, setup.cluster.capacity
        )
        for optimizer in self._optimizers():
            self._sharing.join(optimizer)
        self._draw = np.random.default_rng((options.seed, 1, *self._sharing.stream))
        self._taken = np.zeros(3, np.int64)
        self._warmed = self._critic_updates = self._updates = self._traces = 0
        self.records: list[Record] = []
        self.best_weights: dict[str, Any] = {}
        self._validation = [
            (seed, setup.draw(seed, Split.VALIDATION)[0])
            for seed in seeds_of(Split.VALIDATION, options.validation_traces)
        ]
        self._train = self._sharing.traces(seeds_of(Split.TRAIN, options.train_traces))

    @property
    def progress_share(self) -> float:
        """Done of all updates."""
        options = self.options
        return (self._warmed + self._updates) / max(1, options.warm_up_updates + options.updates)

    def run(self) -> Iterator[Record]:
        """Train to the end from wherever the run stands; a record at each validation."""
        if self._warmed < self.options.warm_up_updates:
            yield from self._warm_up()
        elif not self.records:
            yield self._record(WARM_UP, [], None, None)
        yield from self._reinforce()

    def _warm_up(self) -> Iterator[Record]:
        options = self.options
        seeds = [self._train[index % len(self._train)] for index in range(options.warm_up_traces)]
        traces = [(seed, self.setup.draw(seed, Split.TRAIN)[0]) for seed in dict.fromkeys(seeds)]
        labels = taught(self.setup, self.teacher, self.spec, traces)
        losses: list[float] = []
        while self._warmed < options.warm_up_updates:
            left = 1 - self._warmed / options.warm_up_updates
            for group in self._warm.param_groups:
                group["lr"] = options.warm_up_learning_rate * max(left, 0.02)  # falls in a line: the policy settles
            losses.append(self._imitate(labels))
            self._warmed += 1
            if self._warmed % options.validate_every == 0 or self._warmed == options.warm_up_updates:
                yield self._record(WARM_UP, [], float(np.mean(losses)), None)
                losses = []

    def _imitate(self, labels: Labels) -> float:
        picked = self._draw.integers(len(labels), size=self.options.batch)
        batch = labels
        if self.spec.network == "dense":
            batch, picked = shuffled(labels, picked, self._draw), np.arange(len(picked))
        return cross_entropy_step(self.policy, self._warm, batch, picked)

    def _reinforce(self) -> Iterator[Record]:
        options, exploration = self.options, Exploration(self.options.explore)
        losses: list[Loss] = []
        rewards: list[float] = []
        since = self._updates
        while self._updates < options.updates:
            seed = self._train[self._traces % len(self._train)]
            jobs, _, _ = self.setup.draw(seed, Split.TRAIN)
            run = Simulation(list(jobs), self.setup.cluster, self.setup.speeds, self.setup.settings(seed))
            for slot in slots_of(run, self.policy, exploration, self._taken, self._draw):
                rewards.append(slot.reward)
                self.progress.add(slot.rows, slot.shares)
                self.pace.add(slot.rows, slot.paces)
                self.replay.add(replace(slot.samples, returns=self._returns(slot)))
                if self._sharing.turn(self.replay.ready, going=True).learn:
                    losses += self._learn()
            while (turn := self._sharing.turn(self.replay.ready, going=False)).going:
                losses += self._learn() if turn.learn else []
            self._traces += 1
            if self._updates - since >= options.validate_every or self._updates >= options.updates:
                yield self._record(REINFORCE, losses, None, float(np.mean(rewards)))
                losses, rewards, since = [], [], self._updates

    def _returns(self, slot: FilledSlot) -> np.ndarray:
        """What each sample of a slot is credited with, from there on (see ``actor_critic``)."""
        samples = slot.samples
        if self.options.credit == "step":
            gains = self.progress.gains(samples.states, samples.actions, samples.afters)
            return np.cumsum(gains[::-1])[::-1].astype(np.float32)
        after = 0.0
        if self.options.discount and slot.next_state is not None:
            after = self.options.discount * self.learner.value_of(slot.next_state)
        return np.full(len(samples), slot.reward + after, np.float32)

    def _learn(self) -> list[Loss]:
        """The updates after a slot; the critic's first ones leave the policy as it is."""
        options, losses = self.options, []
        worths = self.pace.worths() if options.credit == "pace" else None
        for _ in range(options.updates_per_slot):
            actor = self._critic_updates >= options.critic_updates or not options.critic
            if actor and self._updates >= options.updates:
                break
            loss = self._by_return(actor) if worths is None else self._by_pace(actor, worths)
            if actor:
                self._updates += 1
                losses.append(loss)
            else:
                self._critic_updates += 1
        return losses

    def _by_return(self, actor: bool) -> Loss:
        """One update of policy and critic by what the actions taken brought."""
        self.progress.learn(self.options.batch, self._draw)
        picked, samples, weights = self.replay.draw(self.options.batch, self._draw)
        gains = self.progress.gains(samples.states, samples.actions, samples.afters)
        loss, advantages = self.learner.update(samples, gains, weights, actor=actor)
        self.replay.renew(picked, advantages)
        return loss

    def _by_pace(self, actor: bool, worths: np.ndarray) -> Loss:
        """One update of the policy by what all actions are worth; without ``actor`` of the pace model alone."""
        options = self.options
        error = self.pace.learn(options.batch, self._draw)
        if not actor:
            return Loss(0.0, error, 0.0)
        picked, samples, _ = self.replay.draw(options.batch, self._draw)
        worth = self.pace.advantages(samples.states, worths)
        loss, off = all_actions_step(self.policy, self.learner.policy_optimizer, samples, worth, options.entropy)
        self.replay.renew(picked, off)
        return replace(loss, value=error)

    def _record(self, phase: str, losses: list[Loss], warm: float | None, reward: float | None) -> Record:
        leads = self._sharing.leads  # of several clusters one validates
        jct_s = mean_jct_s(self.setup, Policy(self.policy).scheduler(), self._validation) if leads else np.inf
        best = leads and all(jct_s < before.mean_jct_s for before in self.records)
        if best:
            self.best_weights = {name: part.clone() for name, part in self.policy.layers.state_dict().items()}
        some = bool(losses)
        record = Record(
            phase=phase,
            updates=self._warmed if phase == WARM_UP else self._updates,
            traces=self._traces,
            policy_loss=float(np.mean([loss.policy for loss in losses])) if some else warm,
            value_loss=float(np.mean([loss.value for loss in losses])) if some else None,
            entropy=float(np.mean([loss.entropy for loss in losses])) if some else None,
            reward_per_slot=reward,
            mean_jct_s=jct_s,
            best=best,
        )
        self.records.append(record)
        return record

    def teacher_jct_s(self) -> float:
        """The teacher's mean completion time on the validation traces."""
        return mean_jct_s(self.setup, self.teacher, self._validation)

    def contents_options(self, options: TrainingOptions | None = None) -> dict[str, Any]:
        """What the run was told, as plain values: its options, and those of the setup that are no default."""
        told, usual = asdict(self.setup.options), asdict(SetupOptions())
        setup = {name: str(value) for name, value in told.items() if value != usual[name]}
        return {**asdict(options or self.options), "setup": setup}

    def best_policy(self) -> Network:
        """The policy network with the best weights so far."""
        network = Network(self.spec, value=False, seed=0)
        network.layers.load_state_dict(self.best_weights)
        return network

    def contents(self) -> dict[str, Any]:
        """Tensors and plain values from which ``restore`` goes on."""
        torch = torch_module()
        replayed = self.replay.contents()
        return {
            "options": self.contents_options(),
            "policy": self.policy.layers.state_dict(),
            "value": self.value.layers.state_dict(),
            "best": self.best_weights,
            "optimizers": [one.state_dict() for one in self._optimizers()],
            "progress": self.progress.contents(),
            "pace": self.pace.contents(),
            "replay": {
                name: torch.from_numpy(part) if isinstance(part, np.ndarray) else part
                for name, part in replayed.items()
            },
            "draw": json.dumps(self._draw.bit_generator.state),
            "taken": self._taken.tolist(),
            "counts": [self._warmed, self._critic_updates, self._updates, self._traces],
            "records": [asdict(record) for record in self.records],
        }

    def restore(self, contents: Mapping[str, Any], name: str = "the run to resume") -> None:
        """From ``contents`` of a run with equal options (``updates`` may differ); else raises ``UsageError``."""
        torch = torch_module()
        self.check_options(contents["options"], name)
        self.policy.layers.load_state_dict(contents["policy"])
        self.value.layers.load_state_dict(contents["value"])
        self.best_weights = dict(contents["best"])
        for optimizer, state in zip(self._optimizers(), contents["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        self.progress.restore(contents["progress"])
        self.pace.restore(contents["pace"])
        self.replay.restore(
            {
                name: part.numpy() if isinstance(part, torch.Tensor) else part
                for name, part in contents["replay"].items()
            }
        )
        self._draw.bit_generator.state = json.loads(contents["draw"])
        self._taken = np.array(contents["taken"], np.int64)
        self._warmed, self._critic_updates, self._updates, self._traces = contents["counts"]
        self.records = [Record(**record) for record in contents["records"]]

    def check_options(self, saved: Mapping[str, Any], name: str, options: TrainingOptions | None = None) -> None:
        """Raises ``UsageError`` for the first that differs; one that a file does not know yet had its default."""
        usual, saved = asdict(TrainingOptions()), renamed(saved)
        for option, value in self.contents_options(options).items():
            had = saved.get(option, usual.get(option))
            if option != "updates" and had != value:
                raise UsageError(f"{name}: made with {option} {had}, not {value}; resume with the same")

    def _optimizers(self) -> tuple[Any, ...]:
        return self._warm, self.learner.policy_optimizer, self.learner.value_optimizer
