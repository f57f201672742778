"""The simulator as a gymnasium environment: DL2's repeated inference, one task at a time (extra ``schedule``).

A step adds tasks to one job of the window or, with void, a masked action or one that does not fit, ends the slot:
the slot is run, its reward is returned (other steps give 0), the next slot begins. With ``starting_bundle`` every
job first gets one worker and one server, as DL2's code does against starvation. An episode is a trace.
Source: Peng et al., DL2 (arXiv 1909.06040); state and actions: ``graphcost.sched.features``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcost.errors import UsageError
from graphcost.sched import Allocation, JobView
from graphcost.sched.features import ACTIONS, NUMBERS, action_mask, state, window_of
from graphcost.sim.jobs import Job, SimCluster
from graphcost.sim.simulation import Settings, Simulation
from graphcost.sim.speeds import SpeedModel

try:
    import gymnasium
except ImportError:
    raise UsageError("the schedule environment needs gymnasium: pip install 'graphcost[schedule]'") from None

State = NDArray[np.float32]


class ScheduleEnv(gymnasium.Env[State, np.int64]):
    """``jobs(seed)`` draws an episode's trace; ``models`` are the one-hot columns; ``window`` is DL2's J.

    ``reset(options={"trace": n})`` chooses the trace's seed, else it is drawn from ``seeds``. ``info`` holds
    ``action_mask`` (1 = allowed), ``slot``, and after a slot ``slot_ended``: the slot's outcome.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # gymnasium's own declaration

    def __init__(
        self,
        jobs: Callable[[int], Sequence[Job]],
        cluster: SimCluster,
        speeds: SpeedModel,
        *,
        models: Sequence[str],
        seeds: range,
        settings: Callable[[int], Settings] = lambda seed: Settings(),
        window: int = 20,
        starting_bundle: bool = True,
    ) -> None:
        if window < 1 or not seeds:
            raise UsageError(f"a window of {window} jobs and {len(seeds)} seeds: at least one of each")
        self._jobs, self._cluster, self._speeds, self._settings = jobs, cluster, speeds, settings
        self._models, self._seeds, self._size, self._bundle = tuple(models), seeds, window, starting_bundle
        self.observation_space = gymnasium.spaces.Box(
            0.0, np.inf, (window, len(self._models) + NUMBERS), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(3 * window + 1)
        self.simulation: Simulation | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[State, dict[str, Any]]:
        """Start a trace."""
        super().reset(seed=seed)
        drawn = self._seeds[int(self.np_random.integers(len(self._seeds)))]
        trace = int((options or {}).get("trace", drawn))
        self.simulation = Simulation(list(self._jobs(trace)), self._cluster, self._speeds, self._settings(trace))
        self._begin_slot()
        return self._observe(), self._info()

    def step(self, action: np.int64) -> tuple[State, float, bool, bool, dict[str, Any]]:
        """Add tasks, or end the slot."""
        run = self.simulation
        if run is None:
            raise UsageError("step() before reset()")
        if self._add(int(action)):
            return self._observe(), 0.0, False, False, self._info()
        outcome = run.run_slot(self._allocation.decision().grants)
        info = {"slot_ended": outcome}
        unfinished = bool(run.view().jobs)
        if run.done:
            self._window: tuple[JobView, ...] = ()
            return self._observe(), outcome.reward, not unfinished, unfinished, {**self._info(), **info}
        self._begin_slot()
        return self._observe(), outcome.reward, False, False, {**self._info(), **info}

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask under the name that maskable learners look for."""
        return action_mask(self._window, self._allocation, self._size).astype(bool)

    def _add(self, action: int) -> bool:
        """As DL2: only the least loaded node is tried."""
        row, kind = divmod(action, 3)
        if row >= len(self._window):
            return False
        workers, ps = ACTIONS[kind]
        return self._allocation.add(self._window[row], workers, ps, node=self._allocation.least_loaded())

    def _begin_slot(self) -> None:
        assert self.simulation is not None
        view = self.simulation.view()
        self._allocation = Allocation(view)
        if self._bundle:
            for job in view.jobs:
                self._allocation.add_bundle(job)

    def _observe(self) -> State:
        assert self.simulation is not None
        if not self.simulation.done:
            self._window = window_of(self._allocation.view, self._allocation, self._size)
        return state(self._window, self._allocation, self._models, self._size)

    def _info(self) -> dict[str, Any]:
        assert self.simulation is not None
        return {
            "action_mask": action_mask(self._window, self._allocation, self._size),
            "slot": self.simulation.slot,
        }
