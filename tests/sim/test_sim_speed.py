"""The benchmark's plain simulator against ours: two implementations, the same moments to the last bit."""

from __future__ import annotations

import pytest

from benchmarks.sim_speed import ours, plain
from graphcost.sim.setup import SetupOptions, set_up


@pytest.mark.parametrize(("workload", "nodes", "scaling"), [
    ("dl2-release", 6, "hot"), ("dl2-release", 20, "checkpoint"), ("dl2-development", 12, "none"),
])  # fmt: skip
def test_two_simulators_agree(workload: str, nodes: int, scaling: str) -> None:
    setup = set_up(SetupOptions(workload=workload, nodes=nodes, count=12, scaling=scaling))
    jobs = setup.draw(1, None)[0]
    found = ours(jobs, setup)
    assert len(found) == 12 and found == plain(jobs, setup)
