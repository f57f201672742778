"""A slot as a learner sees it: state, mask and actions, kept up to date while tasks are handed out.

State and action order are those of ``graphcost.sched.features``; here only the row that an action touches is
renewed, and tasks that fit on no node any more are masked too, so that an action never fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphcost.errors import UnknownNameError
from graphcost.registry import did_you_mean
from graphcost.sched.allocation import Allocation
from graphcost.sched.compact_nodes import CompactAllocation
from graphcost.sched.features import ACTIONS, NUMBERS, state, window_of
from graphcost.sched.packing import packed_on_few_nodes
from graphcost.sched.view import Decision, JobView, Resources, SlotView

State = NDArray[np.float32]
Mask = NDArray[np.bool_]


PLACEMENTS = ("spread", "packed", "compact")
"""``spread``: a task at a time on the least loaded node, as DL2 leaves it to the cluster. ``packed``: a slot's tasks
laid anew as Optimus does. ``compact``: each job on as few nodes as it needs alone; tasks that would need more are
masked. The last two are not in DL2's paper and matter where speeds depend on the place."""


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """The shape of a policy. ``models``: one-hot columns; ``window``: DL2's J, the jobs that it sees.

    ``starting_bundle``: every job first gets one worker and one server, as DL2's code does against
    starvation. ``placement``: see ``PLACEMENTS``. ``network``: ``shared`` or ``dense`` (see ``network``), ``hidden``
    units a layer.
    """

    models: tuple[str, ...]
    window: int = 20
    starting_bundle: bool = True
    placement: str = "spread"
    network: str = "shared"
    hidden: int = 64

    def __post_init__(self) -> None:
        if self.placement not in PLACEMENTS:
            raise UnknownNameError(
                f"no placement named {self.placement!r}{did_you_mean(self.placement, PLACEMENTS)} "
                f"({', '.join(PLACEMENTS)})"
            )

    @property
    def columns(self) -> int:
        """Numbers a job of the state."""
        return len(self.models) + NUMBERS

    @property
    def actions(self) -> int:
        """3 J + 1."""
        return 3 * self.window + 1

    @property
    def void(self) -> int:
        """The action that ends the slot."""
        return 3 * self.window


class SlotEncoder:
    """One slot being filled. ``state``: window x columns; ``mask``: True where an action can be taken; void can."""

    def __init__(self, view: SlotView, spec: PolicySpec) -> None:
        self.spec = spec
        self._compact = CompactAllocation(view) if spec.placement == "compact" else None
        self.allocation = self._compact or Allocation(view)
        if spec.starting_bundle:
            for job in view.jobs:
                self.allocation.add_bundle(job)
        self._full: set[Resources] = set()
        self._demands = {job.job_id: tuple(job.demand(*added) for added in ACTIONS) for job in view.jobs}
        self._open_window()

    def take(self, action: int) -> bool:
        """Hand out the tasks of ``action``; False, and nothing changed, for void or a masked one."""
        if action == self.spec.void or not self.mask[action]:
            return False
        row, kind = divmod(action, 3)
        job = self.window[row]
        self.allocation.add(job, *ACTIONS[kind])
        if self._is_open(job):
            self._renew(row)
            self._mask()
        else:
            self._open_window()
        return True

    def give(self, job: JobView, workers: int, ps: int) -> bool:
        """What somebody else hands out (a teacher); False where it does not fit."""
        if not self.allocation.add(job, workers, ps):
            return False
        self._open_window()
        return True

    def decision(self) -> Decision:
        """What was handed out, as it is placed in the end."""
        made = self.allocation.decision()
        return (packed_on_few_nodes(self.allocation.view, made) if self.spec.placement == "packed" else None) or made

    def row_of(self, job: JobView) -> State:
        """A job's row as it stands, in the window or not."""
        found: State = state((job,), self.allocation, self.spec.models, 1)[0]
        return found

    def action_of(self, job_id: str, workers: int, ps: int) -> int | None:
        """The action that adds these tasks; None for a job outside the window or tasks that are no action."""
        if (workers, ps) not in ACTIONS or job_id not in self._rows:
            return None
        return 3 * self._rows[job_id] + ACTIONS.index((workers, ps))

    def _is_open(self, job: JobView) -> bool:
        allocation = self.allocation
        return allocation.within_caps(job, 1, 0) or (job.ps is not None and allocation.within_caps(job, 0, 1))

    def _open_window(self) -> None:
        spec = self.spec
        self.window = window_of(self.allocation.view, self.allocation, spec.window)
        self._rows = {job.job_id: row for row, job in enumerate(self.window)}
        self.state: State = state(self.window, self.allocation, spec.models, spec.window)
        self._within_caps = np.zeros((spec.window, 3), bool)
        kinds: dict[Resources, int] = {}
        self._kind_of = np.zeros((spec.window, 3), np.int64)
        for row, job in enumerate(self.window):
            self._within_caps[row] = [self.allocation.within_caps(job, *added) for added in ACTIONS]
            self._kind_of[row] = [kinds.setdefault(demand, len(kinds)) for demand in self._demands[job.job_id]]
        self._kinds = tuple(kinds)
        self._mask()

    def _renew(self, row: int) -> None:
        """The row of a job that got something."""
        job, allocation = self.window[row], self.allocation
        share = allocation.dominant_share(job)
        self.state[row, -3:] = (share, allocation.workers(job), allocation.ps(job))
        self._within_caps[row] = [allocation.within_caps(job, *added) for added in ACTIONS]

    def _mask(self) -> None:
        """What found no room once finds none later in the slot."""
        if self._compact is not None:
            self.mask: Mask = np.append(self._kept_compact(self._compact).ravel(), True)
            return
        for demand in self._kinds:
            if demand not in self._full and not self.allocation.has_room(demand):
                self._full.add(demand)
        room = np.array([demand not in self._full for demand in self._kinds] or [False])
        self.mask = np.append((self._within_caps & room[self._kind_of]).ravel(), True)

    def _kept_compact(self, allocation: CompactAllocation) -> NDArray[np.bool_]:
        """Which actions find room, ``[window, 3]``."""
        found = self._within_caps.copy()
        for row, job in enumerate(self.window):
            for kind in np.flatnonzero(found[row]):
                found[row, kind] = allocation.stays_compact(job, *ACTIONS[kind])
        return found
