"""``schedule advise``: counts by hand on a speed by formula, and the command on the cost engine."""

from __future__ import annotations

import json

import pytest
from schedule_worlds import Rates, ring, served

from graphcost.cli.main import main
from graphcost.errors import PlacementError, UsageError
from graphcost.sim import SimCluster
from graphcost.sim.best_tasks import advise_tasks

RATES = Rates({"s": lambda w, p: w / (1 + w / p) - 0.01 * p, "flat": lambda w, p: min(w, 4)})


def test_counts_by_hand() -> None:
    """s: w p / (w + p) - p / 100. Caps 4 and 3: (4, 3) gives 12/7 - 0.03 = 1.684; within a fifth of it (1.347) lie
    (3, 3) 1.47 of 6 tasks, and of 6 too (4, 2) 1.313 not; none of 5: (3, 2) 1.18, (2, 3) 1.17.
    """
    found = advise_tasks(RATES, served("s"), SimCluster.equal(4, 8, 4), 4, 3, slack=0.2)
    assert (found.fastest.workers, found.fastest.ps) == (4, 3)
    assert found.fastest.samples_per_s == pytest.approx(12 / 7 - 0.03)
    assert (found.enough.workers, found.enough.ps) == (3, 3)
    assert [row.ps for row in found.by_workers] == [3, 3, 3, 3]
    assert found.by_workers[0].efficiency == 1 and found.by_workers[1].efficiency == pytest.approx(1.17 / 2 / 0.72)


def test_a_plateau_needs_no_more_than_its_start() -> None:
    found = advise_tasks(RATES, ring("flat"), SimCluster.equal(4, 8, 4), 10, 1, slack=0.0)
    assert found.fastest.workers == found.enough.workers == 4 and found.enough.ps == 0


def test_the_cluster_limits_what_is_tried() -> None:
    """2 CPUs hold two workers."""
    found = advise_tasks(RATES, ring("flat"), SimCluster.equal(1, 2, 4), 10, 1)
    assert [row.workers for row in found.by_workers] == [1, 2]
    with pytest.raises(PlacementError, match=r"flat: not even one worker fits the cluster of 0\.5 CPUs"):
        advise_tasks(RATES, ring("flat"), SimCluster.equal(1, 0.5, 4), 10, 1)
    with pytest.raises(UsageError, match="--max-workers 0"):
        advise_tasks(RATES, ring("flat"), SimCluster.equal(1, 2, 4), 0, 1)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """On one server, which holds eight of the nine workers asked for; speeds are those of ``analyze``."""
    command = ["schedule", "advise", "zoo:resnet18", "--arch", "allreduce", "--nodes", "1", "--max-workers", "9"]
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["by_workers"]) == 8
    rates = {row["workers"]: row["samples_per_s"] for row in found["by_workers"]}
    for gpus in (1, 8):
        assert main(["analyze", "zoo:resnet18", "--gpus", str(gpus), "--format", "json", "--quiet"]) == 0
        step = json.loads(capsys.readouterr().out)["step"]
        assert rates[gpus] == pytest.approx(step["samples_per_s"])
    assert main(command) == 0
    assert "enough: the fewest tasks within 10.0 % of the highest speed" in capsys.readouterr().out
    assert main(["schedule", "advise", "zoo:resnet18", "--slack", "2", "--quiet"]) == 2
