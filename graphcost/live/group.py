"""The workers of one job on Ray: formed anew at every change of their number, from the checkpoint in the driver.

Forming and a chunk of steps are sent together; each worker runs its calls in their order. One lost worker loses the
group's chunk, never more: the checkpoint before it is kept here, outside all workers. Survivors are used again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphcost.live.jobs import Checkpoint, Chunk, LiveJob, Lost
from graphcost.live.pool import Pool, Process

GRACE_S = 5.0
"""assumed: what the others of a broken group may take to notice; whoever has not answered by then is replaced."""

MOST_RESTARTS = 5
"""assumed: groups lost one after another without a step between them; then the job is given up."""


@dataclass(slots=True, eq=False)
class Group:
    """One job: where it stands, and who works on it.

    ``number``: of the group as formed, -1 while it is not; ``greeted``: of the last that was told of. ``due_s``: when
    what it was asked is taken as lost.
    """

    job: LiveJob
    checkpoint: Checkpoint | None = None
    losses: list[float] = field(default_factory=list)
    members: list[Process] = field(default_factory=list)
    number: int = -1
    greeted: int = -1
    asked: dict[Any, Process] = field(default_factory=dict)
    answers: list[Chunk | Lost] = field(default_factory=list)
    due_s: float = 0.0
    run_s: float = 0.0
    restarts: int = 0
    in_vain: int = 0
    finish_s: float | None = None
    failed: str | None = None

    @property
    def steps_done(self) -> int:
        """Those of the last checkpoint: steps after it count once they are in the next."""
        return 0 if self.checkpoint is None else self.checkpoint.step

    @property
    def over(self) -> bool:
        """Finished, or given up."""
        return self.failed is not None or self.steps_done >= self.job.steps

    def resize(self, count: int, pool: Pool) -> None:
        """``count`` members; the group stays formed where that changes nothing."""
        if count == len(self.members):
            return
        self.number = -1
        while len(self.members) > count:
            pool.give_back(self.members.pop())
        while len(self.members) < count:
            self.members.append(pool.take())

    def ask(self, steps: int, now_s: float, patience_s: float, next_number: int) -> None:
        """Send a chunk of at most ``steps`` steps, and the forming before it where it is needed."""
        if self.number < 0:
            self.number = next_number
            place = self.members[0].actor.open.remote()
            for rank, member in enumerate(self.members):
                member.actor.join.remote(
                    place, self.number, rank, len(self.members), self.job, self.checkpoint, patience_s
                )
        until = min(self.job.steps, self.steps_done + steps)
        self.asked = {member.actor.run.remote(self.number, until): member for member in self.members}
        self.answers, self.due_s = [], now_s + patience_s

    def hear(self, ready: Any, now_s: float) -> None:
        """One answer; the first bad one leaves the others ``GRACE_S``."""
        import ray
        from ray.exceptions import RayActorError, RayError, RayTaskError

        member = self.asked.pop(ready)
        try:
            answer: Chunk | Lost = ray.get(ready)
        except RayActorError:
            self.members.remove(member)  # its process is gone
            answer = Lost(f"process {member.pid} died")
        except RayTaskError as error:
            raise RuntimeError(str(error).strip().splitlines()[-1]) from error  # a defect; above it, frames
        except RayError as error:
            answer = Lost(type(error).__name__)
        self.answers.append(answer)
        if isinstance(answer, Lost):
            self.due_s = min(self.due_s, now_s + GRACE_S)

    def drop_silent(self, pool: Pool) -> None:
        """Whoever has not answered in time is ended."""
        silent = ", ".join(member.pid for member in self.asked.values())
        self.answers.append(Lost(f"processes {silent} did not answer in time"))
        for member in self.asked.values():
            self.members.remove(member)
            pool.drop(member)
        self.asked = {}

    def settle(self) -> str | None:
        """All have answered: take the chunk, or say why it is lost and make the next ``ask`` form a new group."""
        lost = [answer for answer in self.answers if isinstance(answer, Lost)]
        chunks = [answer for answer in self.answers if isinstance(answer, Chunk)]
        if not lost:
            (self.checkpoint,) = (chunk.checkpoint for chunk in chunks if chunk.checkpoint is not None)
            self.losses += chunks[0].losses
            self.run_s += max(chunk.run_s for chunk in chunks)
            self.in_vain = 0
            return None
        self.number = -1
        self.restarts += 1
        self.in_vain += 1
        why = next((one.reason for one in lost if one.reason.startswith("process")), lost[0].reason)
        if self.in_vain >= MOST_RESTARTS:
            self.failed = f"{why}; its workers were lost {self.in_vain} times without a step between"
        return why
