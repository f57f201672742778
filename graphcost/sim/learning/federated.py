"""Several clusters that share one policy: each learns from its own traces, gradients are averaged at every step.

Every cluster has its own traces, replay, draws and learned progress, and networks that start equal. A batch is
divided among them; before an optimiser takes a step its gradients become their mean over the clusters (each cut to
its largest norm first), so that the networks stay equal bit for bit and nothing but gradients is exchanged. Clusters
go slot by slot together; one whose trace is over learns on from its replay until the others' are. Threads only wait
for each other, and means are taken in the clusters' order: the outcome depends on no timing.
Source: Peng et al., DL2 (arXiv 1909.06040), federated training, its synchronous variant.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcost.errors import UsageError
from graphcost.sched.dl2.network import Network, torch_module
from graphcost.sim.learning.options import Record, TrainingOptions
from graphcost.sim.learning.sharing import Sharing, Turn
from graphcost.sim.learning.trainer import Trainer
from graphcost.sim.setup import Setup

if TYPE_CHECKING:
    import torch


class Meeting:
    """Where ``count`` threads wait for each other; ``leave`` wakes them all with ``BrokenBarrierError``."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._turns: list[tuple[bool, bool]] = [(False, False)] * count
        self._turn = Turn(learn=False, going=False)
        self._gradients: list[list[torch.Tensor]] = [[] for _ in range(count)]
        self._means: list[torch.Tensor] = []
        self._at_turn = threading.Barrier(count, action=self._decide)
        self._at_step = threading.Barrier(count, action=self._average)

    def turn(self, index: int, ready: bool, going: bool) -> Turn:
        """Once all have come: whether all learn, and whether any trace goes on."""
        self._turns[index] = (ready, going)
        self._at_turn.wait()
        return self._turn

    def mean(self, index: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Of what all bring, parameter by parameter."""
        self._gradients[index] = gradients
        self._at_step.wait()
        return self._means

    def leave(self) -> None:
        """One has failed; nobody is to wait for it."""
        self._at_turn.abort()
        self._at_step.abort()

    def _decide(self) -> None:
        self._turn = Turn(all(ready for ready, _ in self._turns), any(going for _, going in self._turns))

    def _average(self) -> None:
        torch = torch_module()
        self._means = [torch.stack(each).mean(0) for each in zip(*self._gradients, strict=True)]


class Member(Sharing):
    """One cluster of several."""

    def __init__(self, index: int, meeting: Meeting) -> None:
        self._index, self._meeting = index, meeting

    @property
    def leads(self) -> bool:
        """The first validates."""
        return self._index == 0

    @property
    def stream(self) -> tuple[int, ...]:
        """Beside the seed; the first draws what a single cluster does."""
        return () if self._index == 0 else (self._index,)

    def traces(self, seeds: Sequence[int]) -> Sequence[int]:
        """Every N-th."""
        return seeds[self._index :: self._meeting.count]

    def turn(self, ready: bool, *, going: bool) -> Turn:
        """Waits for the other clusters."""
        return self._meeting.turn(self._index, ready, going)

    def join(self, optimizer: torch.optim.Optimizer) -> None:
        """Its steps are taken together."""
        optimizer.register_step_pre_hook(lambda one, *_: self._share(one))

    def _share(self, optimizer: torch.optim.Optimizer) -> None:
        own = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
        for one, mean in zip(own, self._meeting.mean(self._index, [one.grad for one in own]), strict=True):
            one.grad = mean.clone()


class Federation:
    """A run of ``options.clusters`` clusters, with what ``Trainer`` offers; the first one's networks are all's."""

    def __init__(self, setup: Setup, options: TrainingOptions) -> None:
        count = options.clusters
        self.options = options
        self._meeting = Meeting(count)
        local = replace(
            options,
            batch=options.batch // count,
            buffer=options.buffer // count,
            warm_up_traces=-(-options.warm_up_traces // count),
            clusters=1,
        )
        self.members = [Trainer(setup, local, Member(index, self._meeting)) for index in range(count)]
        self.lead = self.members[0]
        self.teacher = self.lead.teacher

    @property
    def records(self) -> list[Record]:
        """Of all clusters together."""
        return self.lead.records

    @property
    def progress_share(self) -> float:
        """Done of all updates."""
        return self.lead.progress_share

    def run(self) -> Iterator[Record]:
        """As ``Trainer.run``; losses and rewards are means over the clusters, traces their sum."""
        runs = [member.run() for member in self.members]
        torch = torch_module()
        few = (torch.get_num_threads(),)  # a new thread would split its sums by torch's default
        with ThreadPoolExecutor(len(runs), initializer=torch.set_num_threads, initargs=few) as threads:
            while True:
                made = self._leg(threads, runs)
                if not made:
                    return
                self.lead.records[-1] = merged(made)
                yield self.lead.records[-1]

    def _leg(self, threads: ThreadPoolExecutor, runs: Sequence[Iterator[Record]]) -> list[Record]:
        """Every cluster up to its next record; none at the end. Whatever fails one, or the caller, ends all."""
        legs = [threads.submit(next, run, None) for run in runs]
        try:
            wait(legs, return_when=FIRST_EXCEPTION)
        finally:
            if any(not leg.done() or leg.exception() for leg in legs):
                self._meeting.leave()
        wait(legs)
        failed = [error for leg in legs if (error := leg.exception()) is not None]
        causes = [error for error in failed if not isinstance(error, threading.BrokenBarrierError)]
        for error in (*causes, *failed):
            raise error
        return [record for leg in legs if (record := leg.result()) is not None]

    def teacher_jct_s(self) -> float:
        """As ``Trainer.teacher_jct_s``."""
        return self.lead.teacher_jct_s()

    def best_policy(self) -> Network:
        """As ``Trainer.best_policy``."""
        return self.lead.best_policy()

    def contents_options(self) -> dict[str, Any]:
        """As ``Trainer.contents_options``, of the whole."""
        return self.lead.contents_options(self.options)

    def contents(self) -> dict[str, Any]:
        """As ``Trainer.contents``: those of each cluster."""
        return {"options": self.contents_options(), "clusters": [member.contents() for member in self.members]}

    def restore(self, contents: Mapping[str, Any], name: str = "the run to resume") -> None:
        """As ``Trainer.restore``."""
        self.lead.check_options(contents["options"], name, self.options)
        for member, held in zip(self.members, contents["clusters"], strict=True):
            member.restore(held, name)


def merged(records: Sequence[Record]) -> Record:
    """The clusters' records of one moment; the first has the validation."""

    def mean(name: str) -> float | None:
        values = [value for one in records if (value := getattr(one, name)) is not None]
        return float(np.mean(values)) if values else None

    return replace(
        records[0],
        traces=sum(one.traces for one in records),
        policy_loss=mean("policy_loss"),
        value_loss=mean("value_loss"),
        entropy=mean("entropy"),
        reward_per_slot=mean("reward_per_slot"),
    )


def trainer_of(setup: Setup, options: TrainingOptions) -> Trainer | Federation:
    """One cluster, or several; raises ``UsageError`` where a batch or the traces cannot be divided."""
    count = options.clusters
    if count == 1:
        return Trainer(setup, options)
    if options.batch % count:
        raise UsageError(f"--batch {options.batch}: {count} clusters cannot share it equally")
    if options.train_traces < count:
        raise UsageError(f"--train-traces {options.train_traces}: at least one for each of {count} clusters")
    return Federation(setup, options)
