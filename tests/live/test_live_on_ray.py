"""Live schedules on a real Ray cluster of this machine: resized, killed, interrupted, and never hanging."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

import ray
import torch
from test_live_training import plain

from graphcost.cli.main import main
from graphcost.live import group
from graphcost.live.engine import on_ray
from graphcost.live.group import Group
from graphcost.live.jobs import LiveOptions
from graphcost.live.pool import Process
from graphcost.live.running import LiveRun, live_jobs
from graphcost.sched import Decision, Grant, Knowledge, Scheduler, SlotView, Tasks
from graphcost.sim.setup import SetupOptions, set_up

pytestmark = pytest.mark.slow

OPTIONS = LiveOptions(steps=120, batch=32, checkpoint_every=20, real_slot_s=0.01, patience_s=60)
"""Slots so short that each is one chunk of 20 steps: what is held changes every 20 steps."""


def changing(view: SlotView, seed: int) -> Decision:
    """1, 3, 3, 2, 0 workers in turn for the first job; one for the second job."""
    grants = []
    for job in view.jobs[:2]:
        workers = (1, 3, 3, 2, 0)[view.slot % 5] if job.order == 0 else 1
        if workers:
            grants.append(Grant(job.job_id, (Tasks(job.order, workers, 1),)))
    return Decision(tuple(grants))


CHANGING = Scheduler("changing", changing, Knowledge.NONE, "", "")


def process_of(member: Process) -> int:
    """Its number, however long a busy machine takes to start it."""
    return int(ray.get(member.told, timeout=120))


def test_resized_and_killed_jobs_end_at_the_weights_of_a_single_process() -> None:
    """SIGKILL once while a group of three forms, and once while it computes; no step is lost or counted twice."""
    setup = set_up(SetupOptions(workload="dl2-release", nodes=2, count=2, cpus_per_node=16, gpus_per_node=8))
    jobs, _, _ = setup.draw(0, None)
    live = live_jobs(jobs, 0, OPTIONS)
    first = jobs[0].job_id
    words: list[str] = []
    killed: list[int] = []

    def asked(group: Group) -> None:
        """Three workers were sent work: kills rank 1 while they form, later rank 0 while they compute."""
        formed = group.number == group.greeted
        if group.job.job_id == first and len(group.members) == 3 and len(killed) == int(formed):
            time.sleep(0.05 * formed)
            killed.append(process_of(group.members[0 if formed else 1]))
            os.kill(killed[-1], signal.SIGKILL)

    with on_ray(list(live.values()), 4, OPTIONS, time.monotonic, words.append, asked) as engine:
        found = LiveRun(jobs, live, setup, CHANGING, engine, OPTIONS, 0, time.monotonic).schedule()
        groups = engine.groups
    outcome = found.jobs[0]
    assert found.finished == 2 and outcome.restarts == 2 == len(set(killed)) and outcome.most_workers == 3
    assert outcome.resizes >= 3 and found.jobs[1].restarts == 0
    assert all(any(f"process {pid} died; again from step" in word for word in words) for pid in killed), words
    for job in found.jobs:
        weights, losses = plain(live[job.job_id])
        assert job.steps_done == job.steps == len(job.losses)
        torch.testing.assert_close(list(job.losses), losses, rtol=1e-9, atol=0)
        kept = groups[job.job_id].checkpoint
        assert kept is not None and kept.step == job.steps
        for name, value in kept.weights.items():
            torch.testing.assert_close(value, weights[name], rtol=1e-9, atol=1e-12)


def two_workers(view: SlotView, seed: int) -> Decision:
    """For the oldest job."""
    return Decision((Grant(view.jobs[0].job_id, (Tasks(0, 2, 1),)),))


def test_a_silent_worker_is_replaced_and_a_job_that_cannot_live_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of the first job is stopped (SIGSTOP), as the clock alone can tell; the second loses all of its."""
    monkeypatch.setattr(group, "MOST_RESTARTS", 2)
    options = LiveOptions(steps=40, batch=32, checkpoint_every=20, real_slot_s=5, patience_s=40)
    setup = set_up(SetupOptions(workload="dl2-release", nodes=1, count=2, cpus_per_node=16, gpus_per_node=8))
    jobs, _, _ = setup.draw(0, None)
    live = live_jobs(jobs, 0, options)
    first, second = (job.job_id for job in jobs)
    words: list[str] = []
    stopped: list[int] = []

    def asked(one: Group) -> None:
        if one.job.job_id == first and not stopped:
            stopped.append(process_of(one.members[1]))
            os.kill(stopped[0], signal.SIGSTOP)
        elif one.job.job_id == second:
            ray.kill(one.members[0].actor)  # ends its process, also one that is not there yet

    scheduler = Scheduler("two", two_workers, Knowledge.NONE, "", "")
    with on_ray(list(live.values()), 2, options, time.monotonic, words.append, asked) as engine:
        found = LiveRun(jobs, live, setup, scheduler, engine, options, 0, time.monotonic).schedule()
        weights = engine.groups[first].checkpoint
    done, lost = found.jobs
    assert done.steps_done == done.steps and done.restarts >= 1 and weights is not None
    assert any(
        re.search(rf"processes .*{stopped[0]}.* did not answer in time; again from step 0", word) for word in words
    )
    wanted, _ = plain(live[first])
    assert all(torch.allclose(weights.weights[name], wanted[name], rtol=1e-9, atol=1e-12) for name in wanted)
    assert lost.failed is not None and "its workers were lost 2 times without a step between" in lost.failed
    assert lost.steps_done == 0 and lost.finish_s is None and found.finished == 1
    until = time.monotonic() + 20
    while Path(f"/proc/{stopped[0]}").exists():
        assert time.monotonic() < until, "a stopped worker outlives the run"
        time.sleep(0.1)


SCHEMA = Path(__file__).parents[2] / "graphcost" / "report" / "schedule_live.schema.json"
LIVE = [sys.executable, "-m", "graphcost", "schedule", "live"]
PROCESSES = re.compile(r"processes (\d+(?:, \d+)*)")


class Running:
    """The command, with the lines of its stderr as they come and the worker processes that they name."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*LIVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def workers(self) -> list[int]:
        """Of the first group that is told; waits for it."""
        until = time.monotonic() + 90
        while time.monotonic() < until and self.process.poll() is None:
            for line in list(self.lines):
                if found := PROCESSES.search(line):
                    return [int(pid) for pid in found[1].split(", ")]
            time.sleep(0.05)
        raise AssertionError("".join(self.lines))

    def end(self) -> tuple[int, str, str]:
        out = self.process.stdout.read() if self.process.stdout is not None else ""
        code = self.process.wait(timeout=120)
        self._reader.join(timeout=10)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code, out, "".join(self.lines)


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "policy.pt"
    short = ["--hidden", "8", "--warm-up-traces", "1", "--warm-up-updates", "20", "--updates", "0"]
    world = ["--count", "4", "--nodes", "4", "--validation-traces", "1", "--validate-every", "20", "--quiet"]
    assert main(["schedule", "train", *world, *short, "--output", str(file)]) == 0
    yield str(file)


def test_a_policy_drives_it_and_a_kill_from_outside_is_survived(policy: str) -> None:
    run = Running("--policy", policy, "--count", "2", "--nodes", "1", "--steps", "2000", "--format", "json")
    victim = run.workers()[0]
    os.kill(victim, signal.SIGKILL)
    code, out, err = run.end()
    assert code == 0, err
    found = json.loads(out)
    jsonschema.validate(found, json.loads(SCHEMA.read_text("utf-8")))
    assert found["finished"] == 2 and found["scheduler"] == "dl2"
    assert all(job["steps_done"] == job["steps"] for job in found["jobs"])
    assert f"process {victim} died; again from step" in err and "Traceback" not in err
    assert sum(job["restarts"] for job in found["jobs"]) == 1


def test_an_interrupted_run_leaves_no_process() -> None:
    run = Running("--scheduler", "drf", "--count", "1", "--nodes", "1", "--steps", "1000000")
    workers = run.workers()
    run.process.send_signal(signal.SIGINT)
    code, out, err = run.end()
    assert code == 130 and out == "" and "Traceback" not in err, err
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until, "workers outlive the run"
        time.sleep(0.1)


def test_a_running_cluster_is_joined_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its address, as ``RAY_ADDRESS`` names it; its nodes are there, and hold nothing, after each of two runs."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        few = ["--count", "2", "--nodes", "1", "--steps", "60", "--real-slot", "1"]
        for _ in range(2):
            assert main(["schedule", "live", "--scheduler", "drf", *few, "--format", "json", "--quiet"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert [job["steps_done"] == job["steps"] for job in found["jobs"]] == [True, True]
        ray.init(log_to_driver=False)
        assert ray.cluster_resources()["CPU"] == 2 and sum(node["Alive"] for node in ray.nodes()) == 1
    finally:
        ray.shutdown()
        cluster.shutdown()
