"""Slots of a live run on an engine in this process: what the scheduler sees, what is held, what is reported."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import jsonschema
import pytest

pytest.importorskip("torch")

from in_process import CHUNK, InProcess

from graphcost.cli.main import main
from graphcost.errors import UsageError
from graphcost.live.jobs import LiveOptions
from graphcost.live.result import LiveSchedule
from graphcost.live.running import LiveRun, live_jobs, most_workers
from graphcost.report.schedule import Drawn
from graphcost.report.schedule_live import live_json, live_text, losses_log
from graphcost.sched import SCHEDULERS, Decision, Grant, Knowledge, Scheduler, SlotView, Tasks
from graphcost.sim.jobs import Job
from graphcost.sim.setup import Setup, SetupOptions, set_up

OPTIONS = LiveOptions(steps=50, batch=16, checkpoint_every=CHUNK)
SEEN: list[SlotView] = []


@pytest.fixture
def setup() -> Setup:
    return set_up(SetupOptions(workload="dl2-release", nodes=2, count=3))


def counting(view: SlotView, seed: int) -> Decision:
    """1, 2, 0, 3 workers in turn, for the oldest job alone; always one server."""
    SEEN.append(view)
    workers = (1, 2, 0, 3)[view.slot % 4]
    job = view.jobs[0]
    spread = tuple(Tasks(node, workers // 2 + (node == 0) * (workers % 2), int(node == 0)) for node in (0, 1))
    return Decision((Grant(job.job_id, spread),)) if workers else Decision(())


COUNTING = Scheduler("counting", counting, Knowledge.NONE, "", "")


def run(
    setup: Setup,
    scheduler: Scheduler,
    *,
    options: LiveOptions = OPTIONS,
    doomed: tuple[str, ...] = (),
    gain: float = 0.9,
) -> tuple[LiveSchedule, InProcess, tuple[Job, ...]]:
    jobs, _, _ = setup.draw(0, None)
    live = {name: replace(one, hidden=4) for name, one in live_jobs(jobs, 0, options).items()}
    engine = InProcess(list(live.values()), doomed, gain)
    SEEN.clear()
    found = LiveRun(jobs, live, setup, scheduler, engine, options, 0, engine.clock).schedule()
    return found, engine, jobs


def test_every_step_counts_once_and_resizes_are_counted(setup: Setup) -> None:
    found, engine, _ = run(setup, COUNTING)
    assert found.finished == 3
    for outcome in found.jobs:
        assert outcome.steps_done == outcome.steps == len(outcome.losses)
    longest = max(found.jobs, key=lambda job: job.steps)
    assert longest.steps == 50
    first = found.jobs[0]
    held = [slot.held[0] for slot in found.slots if slot.held and slot.held[0].job_id == first.job_id]
    assert sum(one.steps for one in held) == first.steps
    mine = [slot[first.job_id] for slot in engine.held if first.job_id in slot]
    assert first.resizes == sum(one != other for one, other in pairwise(mine)) > 0
    assert first.most_workers == max(mine)


def test_the_view_follows_the_steps(setup: Setup) -> None:
    run(setup, COUNTING)
    first = [view.jobs[0] for view in SEEN if view.jobs[0].order == 0]
    assert first[0].remaining_epochs == first[0].epochs and first[0].current_workers == 0
    assert first[1].current_workers == 1 and first[1].current_ps == 1
    shares = [job.remaining_epochs / job.epochs for job in first]
    assert shares == sorted(shares, reverse=True) and shares[1] < 1
    assert all(job.speed is None for job in first)


def test_without_a_server_that_it_needs_a_job_makes_no_step(setup: Setup) -> None:
    def bare(view: SlotView, seed: int) -> Decision:
        return Decision((Grant(view.jobs[0].job_id, (Tasks(0, 2, 0),)),))

    found, engine, _ = run(setup, Scheduler("bare", bare, Knowledge.NONE, "", ""), options=replace(OPTIONS, slots=3))
    assert len(found.slots) == 3 and found.finished == 0
    assert all(count == 0 for slot in engine.held for count in slot.values())
    assert "3 jobs did not finish within 3 slots" in live_text(found, drawn(setup))


def test_a_job_given_up_is_said_and_the_others_go_on(setup: Setup) -> None:
    found, _, jobs = run(setup, SCHEDULERS.find("fifo"), doomed=(setup.draw(0, None)[0][0].job_id,))
    assert found.finished == 2 and found.jobs[0].failed == "process 7 died" and found.jobs[0].restarts == 5
    assert f"{jobs[0].job_id}: given up, process 7 died" in live_text(found, drawn(setup))


@pytest.mark.parametrize("name", ["fifo", "srtf", "drf", "tetris", "optimus", "optimus-exact", "pollux"])
def test_every_scheduler_runs(setup: Setup, name: str) -> None:
    found, engine, _ = run(setup, SCHEDULERS.find(name))
    assert found.finished == 3
    assert bool(engine.tried) == (SCHEDULERS.find(name).knows is Knowledge.SAMPLES)


@pytest.mark.parametrize(("gain", "several"), [(-1.0, False), (0.9, True)])
def test_measured_speeds_decide(setup: Setup, gain: float, several: bool) -> None:
    """Optimus gives a job more than one worker only where more are faster on the engine at hand."""
    found, engine, _ = run(setup, SCHEDULERS.find("optimus"), gain=gain)
    assert (max(job.most_workers for job in found.jobs) > 1) is several
    assert all(counts[0] == 1 and len(counts) > 1 for _, counts in engine.tried)


def test_lengths_and_bounds(setup: Setup) -> None:
    jobs, _, _ = setup.draw(0, None)
    live = live_jobs(jobs, 0, OPTIONS)
    longest = max(job.epochs for job in jobs)
    assert [live[job.job_id].steps for job in jobs] == [max(1, round(50 * job.epochs / longest)) for job in jobs]
    assert len({one.seed for one in live.values()}) == len(jobs)
    # a node of 8 CPUs and 2 GPUs; workers of 2 CPUs and 1 GPU, or of 2 CPUs alone: 4 a node
    assert most_workers(jobs, setup.cluster) == sum(
        4 if any(not j.model.worker.gpu_milli for j in jobs) else 2 for _ in range(2)
    )
    with pytest.raises(UsageError, match=r"--batch 2: a job may have \d workers, each needs a sample"):
        live_jobs(jobs, 0, replace(OPTIONS, batch=2))


def drawn(setup: Setup) -> Drawn:
    _, load, notes = setup.draw(0, None)
    return Drawn(setup, 0, load, notes)


def test_json_and_log(setup: Setup) -> None:
    found, _, _ = run(setup, SCHEDULERS.find("drf"))
    data = json.loads(live_json(found, drawn(setup), OPTIONS))
    schema = json.loads(files("graphcost.report").joinpath("schedule_live.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**data, "surplus": 1}, schema)
    assert data["finished"] == 3 and data["options"]["steps"] == 50
    rows = list(csv.DictReader(losses_log(found).splitlines()))
    for job in data["jobs"]:
        mine = [row for row in rows if row["job_id"] == job["job_id"]]
        assert [int(row["step"]) for row in mine] == list(range(1, job["steps"] + 1))
        assert (float(mine[0]["loss"]), float(mine[-1]["loss"])) == (job["first_loss"], job["last_loss"])
    assert sum(grant["steps"] for slot in data["slots"] for grant in slot["held"]) == len(rows)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "schedule live wants --scheduler NAME or --policy FILE, one of the two"),
        (["--scheduler", "drf", "--policy", "p.pt"], 2, "one of the two"),
        (["--scheduler", "dfr"], 2, "no scheduler named 'dfr'; did you mean 'drf'?"),
        (["--policy", "none.pt"], 3, "none.pt: cannot be read"),
        (["--scheduler", "drf", "--steps", "0"], 2, "--steps 0: at least 1"),
        (["--scheduler", "drf", "--checkpoint-every", "0"], 2, "--checkpoint-every 0: at least 1"),
        (["--scheduler", "drf", "--real-slot", "0"], 2, "--real-slot 0: more than 0 seconds"),
        (["--scheduler", "drf", "--patience", "-1"], 2, "--patience -1: more than 0 seconds"),
        (["--scheduler", "drf", "--scaling", "hot"], 2, "No such option '--scaling'"),
        (["--scheduler", "drf", "--batch", "1"], 2, "--batch 1: a job may have"),
        (["--scheduler", "drf", "--nodes", "500", "--count", "40"], 2, "each a process; at most 64: give fewer"),
        (["--scheduler", "drf", "--output", "no/o.txt"], 2, "--output no/o.txt: no folder no"),
    ],
)  # fmt: skip
def test_bad_input(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "live", "--quiet", *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err and captured.out == ""
