"""Speeds from fitted step times (``fits.toml``): smooth, known everywhere, blind to placement."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.errors import UnknownNameError
from graphcost.registry import did_you_mean
from graphcost.sched import Tasks
from graphcost.sim.jobs import SimCluster, TrainedModel
from graphcost.sim.speeds.base import can_train, check_known, check_served, counts_of


@cache
def _sets() -> dict[str, Any]:
    return tomllib.loads(files("graphcost.sim.speeds").joinpath("fits.toml").read_text("utf-8"))


class FitSpeeds:
    """One experiment's fits: ``release`` (total batch fixed) or ``development`` (batch per worker fixed)."""

    def __init__(self, experiment: str) -> None:
        sets = _sets()
        if experiment not in sets:
            raise UnknownNameError(
                f"no fitted speeds named {experiment!r}{did_you_mean(experiment, sets)} (known: {', '.join(sets)})"
            )
        self.name = f"fits:{experiment}"
        self.note: str = sets[experiment]["source"]
        self._grows: bool = sets[experiment]["batch_grows"]
        self._models: dict[str, dict[str, float]] = sets[experiment]["models"]
        self.models = tuple(self._models)

    def check(self, model: TrainedModel) -> None:
        """Known by name, with parameter servers."""
        check_served(model, self.name)
        check_known(model, self.models, self.name)

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        """By counts alone."""
        return self._rate(model, *counts_of(tasks))

    def most_samples_per_s(self, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
        """The same: placement does not matter."""
        return self._rate(model, workers, ps)

    def _rate(self, model: TrainedModel, w: int, p: int) -> float:
        if not can_train(model, w, p):
            return 0.0
        fit = self._models[model.name]
        step_s = fit["t0"] + fit["tc"] / w + fit["t1"] * w / p + fit["t2"] * w + fit["t3"] * p
        return fit["batch"] * (w if self._grows else 1) / step_s
