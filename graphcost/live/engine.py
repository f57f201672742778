"""All jobs on Ray, a slot at a time: groups are resized, then work in chunks until the slot's time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Protocol

from graphcost.errors import UsageError
from graphcost.live.group import Group
from graphcost.live.jobs import LiveJob, LiveOptions, Progress
from graphcost.live.pool import Pool
from graphcost.live.training import torch_module
from graphcost.many.ray_cluster import ray_cluster

MOST_WARM = 4
"""assumed: processes started before the first slot; more are started as they are wanted."""

POLL_S = 0.5
"""How often the driver looks at its clock while nothing answers."""


class Engine(Protocol):
    """What ``running`` drives; jobs are known by their id."""

    def run_slot(self, workers: Mapping[str, int]) -> Mapping[str, Progress]:
        """Train every job named on so many workers until the slot is over; the others hold nothing."""
        ...

    def samples_per_s(self, job: LiveJob, workers: Sequence[int]) -> Mapping[int, float]:
        """Measured in short trials, whose steps count for nothing."""
        ...

    def losses(self, job_id: str) -> tuple[float, ...]:
        """Of every step done, in order."""
        ...


class RayEngine:
    """``told`` hears of groups formed and lost, in words; ``asked`` of every group that was sent work."""

    def __init__(
        self,
        jobs: Sequence[LiveJob],
        options: LiveOptions,
        pool: Pool,
        clock: Callable[[], float],
        told: Callable[[str], None] = lambda text: None,
        asked: Callable[[Group], None] = lambda group: None,
    ) -> None:
        self.groups = {job.job_id: Group(job) for job in jobs}
        self._options, self._pool, self._clock, self._told = options, pool, clock, told
        self._asked = asked
        self._numbers = count()

    def run_slot(self, workers: Mapping[str, int]) -> Mapping[str, Progress]:
        """As ``Engine``: a slot ends when its time is over and the chunks begun in it are done; each job does one."""
        before = {name: (group.steps_done, group.run_s, group.restarts) for name, group in self.groups.items()}
        wanted = [self.groups[name] for name, held in workers.items() if held and not self.groups[name].over]
        sizes = {group.job.job_id: workers[group.job.job_id] for group in wanted}
        for name, group in self.groups.items():  # what shrinks gives to what grows
            group.resize(min(len(group.members), sizes.get(name, 0)), self._pool)
        for group in wanted:
            group.resize(sizes[group.job.job_id], self._pool)
        self._work(wanted, sizes)
        return {
            name: Progress(
                steps_done=self.groups[name].steps_done,
                steps=self.groups[name].steps_done - before[name][0],
                run_s=self.groups[name].run_s - before[name][1],
                restarts=self.groups[name].restarts - before[name][2],
                finish_s=self.groups[name].finish_s,
                failed=self.groups[name].failed,
            )
            for name in workers
        }

    def samples_per_s(self, job: LiveJob, workers: Sequence[int]) -> Mapping[int, float]:
        """As ``Engine``; trials run one after another, on workers that no job keeps meanwhile."""
        found = {}
        for group in self.groups.values():
            group.resize(0, self._pool)
        for number in workers:
            trial = Group(job)
            trial.resize(number, self._pool)
            self._ask(trial)
            self._hear([trial])
            if trial.settle() is None:
                found[number] = job.batch * len(trial.losses) / trial.run_s
            trial.resize(0, self._pool)
        return found

    def losses(self, job_id: str) -> tuple[float, ...]:
        """As ``Engine``."""
        return tuple(self.groups[job_id].losses)

    def _work(self, wanted: Sequence[Group], sizes: Mapping[str, int]) -> None:
        end_s = self._clock() + self._options.real_slot_s
        busy = list(wanted)
        for group in busy:
            self._ask(group)
        while busy:
            for group in self._hear(busy):
                size = sizes[group.job.job_id]
                if self._taken(group, size) and not group.over and self._clock() < end_s:
                    self._ask(group)
                elif not group.over and group.number < 0:
                    group.resize(size, self._pool)
                    self._ask(group)  # a slot brings each of its jobs forward
                else:
                    busy.remove(group)

    def _taken(self, group: Group, size: int) -> bool:
        """Whether the chunk is done; else the group has lost it."""
        why = group.settle()
        if why is not None:
            ends = "given up" if group.failed else f"again from step {group.steps_done} on {size} workers"
            self._told(f"{group.job.job_id}: {why}; {ends}")
        elif group.greeted != group.number:
            group.greeted = group.number
            processes = ", ".join(member.pid for member in group.members)
            self._told(f"{group.job.job_id}: step {group.steps_done}, processes {processes}")
        if group.over:
            group.finish_s = None if group.failed else self._clock()
            group.resize(0, self._pool)
        return why is None

    def _ask(self, group: Group) -> None:
        options = self._options
        group.ask(options.checkpoint_every, self._clock(), options.patience_s, next(self._numbers))
        self._asked(group)

    def _hear(self, busy: Sequence[Group]) -> list[Group]:
        """Wait for answers; the groups that have all of theirs."""
        import ray

        while True:
            asked: dict[Any, Group] = {ready: group for group in busy for ready in group.asked}
            if asked:
                ready, _ = ray.wait(list(asked), num_returns=1, timeout=POLL_S)
                for one in ready:
                    asked[one].hear(one, self._clock())
            for group in busy:
                if group.asked and self._clock() > group.due_s:
                    group.drop_silent(self._pool)
            whole = [group for group in busy if not group.asked]
            if whole:
                return whole


@contextmanager
def on_ray(
    jobs: Sequence[LiveJob],
    most_workers: int,
    options: LiveOptions,
    clock: Callable[[], float],
    told: Callable[[str], None] = lambda text: None,
    asked: Callable[[Group], None] = lambda group: None,
) -> Iterator[RayEngine]:
    """An engine on the running Ray cluster, or on one of this machine; its processes end with the block.

    Raises ``UsageError`` without torch or Ray, or on a running cluster that has fewer CPUs than ``most_workers``.
    """
    torch_module()
    with ray_cluster(1, "schedule live") as ours:
        import ray

        if not ours:
            there = int(ray.cluster_resources().get("CPU", 0))
            if there < most_workers:
                raise UsageError(
                    f"the Ray cluster has {there} CPUs, a slot may take {most_workers} workers of one CPU each; "
                    "give fewer nodes or a lower --max-workers"
                )
        pool = Pool(0 if ours else 1)
        pool.warm(min(most_workers, MOST_WARM), options.patience_s)
        yield RayEngine(jobs, options, pool, clock, told, asked)
