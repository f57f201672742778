"""``graphcost schedule`` as a user calls it: JSON by its schemas, logs, bad input in one line."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers import shared_folder

from graphcost.cli.main import main
from graphcost.sched import SCHEDULERS
from graphcost.sim.result import METRICS

SMALL = ["--count", "12", "--nodes", "6"]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["schedule", *arguments]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output(capsys, *arguments, "--format", "json"))
    schema = json.loads(files("graphcost.report").joinpath(f"schedule_{arguments[0]}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "surplus": 1}, schema)
    return found


def test_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "simulate", "--scheduler", "drf", "--seed", "3", *SMALL)
    assert len(found["jobs"]) == 12 and found["metrics"]["finished"] == 12 and set(found["metrics"]) == set(METRICS)
    times = [job["finish_s"] - job["arrival_s"] for job in found["jobs"]]
    assert found["metrics"]["mean_jct_s"] == pytest.approx(sum(times) / 12)
    last, first = max(job["finish_s"] for job in found["jobs"]), min(job["arrival_s"] for job in found["jobs"])
    assert found["metrics"]["makespan_s"] == pytest.approx(last - first)
    again = data(capsys, "simulate", "--scheduler", "drf", "--seed", "3", *SMALL)
    other = data(capsys, "simulate", "--scheduler", "drf", "--seed", "4", *SMALL)
    assert again == found and other["jobs"] != found["jobs"]


def test_compare_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The same figures as the JSON's, in a page that fetches nothing."""
    command = ("compare", "--traces", "2", "--schedulers", "drf,fifo", *SMALL)
    page, found = output(capsys, *command, "--format", "html"), data(capsys, *command)
    (apart,) = found["differences"]
    assert f"{100 * apart['relative']['mean']:+.1f} %" in page and "default-src 'none'" in page
    assert "6 nodes of 8 CPUs" in page
    for row in (*found["schedulers"], found["bound"]):
        assert f'data-v="{row["metrics"]["mean_jct_s"]["mean"]!r}"' in page, row["scheduler"]


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "compare", "--traces", "3", "--schedulers", "drf,optimus-exact,fifo", *SMALL)
    assert found["seeds"] == [2_000_000, 2_000_001, 2_000_002] and found["split"] == "test"
    mean = {row["scheduler"]: row["metrics"]["mean_jct_s"] for row in (*found["schedulers"], found["bound"])}
    assert list(mean) == ["drf", "optimus-exact", "fifo", "bound"]
    for figure in mean.values():
        assert mean["bound"]["mean"] <= figure["mean"] and figure["low"] <= figure["mean"] <= figure["high"]
    pairs = {(one["scheduler"], one["against"]): one for one in found["differences"]}
    assert set(pairs) == {("optimus-exact", "drf"), ("fifo", "drf"), ("fifo", "optimus-exact")}
    apart = pairs["fifo", "drf"]["mean_jct_s"]["mean"]
    assert apart == pytest.approx(mean["fifo"]["mean"] - mean["drf"]["mean"])


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert "mean completion" in output(capsys, "simulate", "--scheduler", "fifo", *SMALL)
    text = output(capsys, "compare", "--traces", "2", "--schedulers", "fifo,drf", *SMALL)
    assert "bound" in text and "Paired differences" in text
    listed = output(capsys, "list")
    assert all(name in listed for name in (*SCHEDULERS, "dl2-release", "dl2-development", "zoo"))


def test_logs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    events, slots, trace = tmp_path / "e.csv", tmp_path / "s.json", tmp_path / "t.json"
    logs = ["--events", str(events), "--slots", str(slots), "--timeline", str(trace)]
    found = data(capsys, "simulate", "--scheduler", "optimus-exact", *SMALL, *logs)
    rows = list(csv.DictReader(events.read_text("utf-8").splitlines()))
    for kind in ("arrive", "start", "finish"):
        assert sum(row["kind"] == kind for row in rows) == 12
    assert [float(row["time_s"]) for row in rows] == sorted(float(row["time_s"]) for row in rows)
    used = json.loads(slots.read_text("utf-8"))
    assert len(used) == found["metrics"]["slots"] and sum(use["reward"] for use in used) == pytest.approx(12)
    pieces = [event for event in json.loads(trace.read_text("utf-8"))["traceEvents"] if event["ph"] == "X"]
    by_thread: dict[int, float] = {}
    for piece in pieces:  # a job is at one thing at a time
        assert piece["ts"] >= by_thread.get(piece["tid"], 0.0) - 1e-3 and piece["dur"] > 0
        by_thread[piece["tid"]] = piece["ts"] + piece["dur"]
    assert len(by_thread) == 12


def test_a_generated_table_runs_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    output(capsys, "generate", "--seed", "5", "--output", str(table), *SMALL)
    drawn = data(capsys, "simulate", "--scheduler", "drf", "--seed", "5", *SMALL)
    read = data(capsys, "simulate", "--scheduler", "drf", "--seed", "5", "--trace", str(table), "--nodes", "6")
    assert read["jobs"] == drawn["jobs"] and read["trace"]["format"] == "graphcost"


OWN = "job_id,arrival_s,model,epochs,workers\n"


@pytest.mark.parametrize(
    ("arguments", "table", "code", "message"),
    [
        (["simulate", "--scheduler", "optimos"], None, 2, "no scheduler named 'optimos'; did you mean 'optimus'?"),
        (["compare", "--schedulers", "drf,fifoo"], None, 2, "did you mean 'fifo'?"),
        (["compare", "--schedulers", "drf,drf", "--count", "2"], None, 2, "named twice"),
        (["simulate", "--scheduler", "drf", "--count", "0"], None, 2, "--count 0: at least one job"),
        (["simulate", "--scheduler", "drf", "--nodes", "0"], None, 2, "0 nodes"),
        (["simulate", "--scheduler", "drf", "--cpus-per-node", "0", "--gpus-per-node", "0"], None, 2, "capacity 0"),
        (["simulate", "--scheduler", "drf", "--workload", "dl2-relase"], None, 2, "did you mean 'dl2-release'?"),
        (["simulate", "--scheduler", "drf", "--speeds", "fits:relese"], None, 2, "did you mean 'release'?"),
        (["simulate", "--scheduler", "drf", "--scaling", "warm"], None, 2, "no scaling cost named 'warm'"),
        (["simulate", "--scheduler", "drf", "--arch", "allreduce"], None, 2, "speeds hold with parameter servers"),
        (["simulate", "--scheduler", "drf", "--arch", "mesh"], None, 2, "no architecture named 'mesh'"),
        (["simulate", "--scheduler", "drf", "--slot", "0"], None, 2, "--slot 0"),
        (["simulate", "--scheduler", "drf", "--load", "many"], None, 2, "--load 'many' is not a load"),
        (["simulate", "--scheduler", "drf", "--trace", "absent.csv"], None, 3, "cannot be read as a trace"),
        (["simulate", "--scheduler", "drf"], "a,b\n1,2\n", 3, "no known trace format has these columns"),
        (["simulate", "--scheduler", "drf"], OWN, 3, "no jobs in it"),
        (["simulate", "--scheduler", "drf"], OWN + "a,0,vgg-16,10,1\nb,-1,vgg-16,x,1\n", 3,
         "row 3, column arrival_s: -1 is not at least 0; --skip-bad-rows"),
        (["simulate", "--scheduler", "drf"], OWN + "a,0,vgg-16,ten,1\nb,0,vgg-16,10,1.5\n", 3,
         "row 2, column epochs: 'ten' is not a number, and 1 more bad rows"),
        (["simulate", "--scheduler", "drf"], OWN + "a,0,vgg-16\n", 3, "row 2, column workers: the row has no"),
        (["simulate", "--scheduler", "drf"], OWN + "a,0,vgg-16,-3,1\n", 3, "row 2, column epochs: -3 is not over 0"),
        (["simulate", "--scheduler", "drf"], OWN + "a,0,vgg16,10,1\n", 2,
         "job a: workload dl2-release has no model named 'vgg16'; did you mean 'vgg-16'?"),
        (["simulate", "--scheduler", "drf"], "submit_s,duration_s,num_gpus,vc\n0,50,1,x\n5,-40,2,x\n", 3,
         "row 3, column duration_s: -40 is not over 0; --skip-bad-rows leaves them out"),
        (["simulate", "--scheduler", "drf", "--oversized", "wait"], None, 2,
         "'wait' is not one of 'refuse', 'queue'"),
        (["simulate", "--scheduler", "drf", "--gpus-per-node", "0.5", "--oversized", "queue"],
         OWN + "big,0,vgg-16,10,1\n", 2, "job big can never run"),
        (["simulate", "--scheduler", "drf", "--gpus-per-node", "0.5"], OWN + "big,0,vgg-16,10,1\n", 2,
         "job big can never run: a worker and its parameter server need 4 CPUs and 1 GPUs, the largest node has"),
    ],
)  # fmt: skip
def test_bad_input(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    table: str | None,
    code: int,
    message: str,
) -> None:
    if table is not None:
        path = tmp_path / "trace.csv"
        path.write_text(table, "utf-8")
        arguments = [*arguments, "--trace", str(path)]
    assert main(["schedule", *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err and captured.out == ""


@pytest.mark.parametrize("scheduler", ["fifo", "drf", "srtf"])
def test_a_job_that_fits_nowhere_is_refused_or_waits_for_ever(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scheduler: str
) -> None:
    """On nodes without GPUs vgg-16 never runs and text-cnn does, as if it were alone; the first in the queue too."""
    path, alone = tmp_path / "trace.csv", tmp_path / "alone.csv"
    path.write_text(OWN + "big,0,vgg-16,10,1\nlater,1300,vgg-16,10,1\nsmall,2000,text-cnn,900,1\n", "utf-8")
    alone.write_text(OWN + "small,2000,text-cnn,900,1\n", "utf-8")
    run = ["--scheduler", scheduler, "--nodes", "2", "--gpus-per-node", "0"]
    assert main(["schedule", "simulate", *run, "--trace", str(path)]) == 2
    err = capsys.readouterr().err
    assert "job big can never run: a worker and its parameter server need 4 CPUs and 1 GPUs" in err
    assert ", and 1 more jobs" in err and "--oversized queue" in err
    found = data(capsys, "simulate", *run, "--trace", str(path), "--oversized", "queue")
    assert found["notes"][-1] == "2 jobs need more than any node has and wait for ever: big, later"
    jobs = {job["job_id"]: job for job in found["jobs"]}
    assert (found["metrics"]["finished"], found["metrics"]["unfinished"]) == (1, 2)
    for job_id in ("big", "later"):
        assert jobs[job_id]["start_s"] is None and jobs[job_id]["epochs_done"] == 0
    lonely = data(capsys, "simulate", *run, "--trace", str(alone))
    (small,) = lonely["jobs"]
    assert found["metrics"]["slots"] == lonely["metrics"]["slots"], "no slot is run for jobs that nobody can run"
    # alone it arrives at 0 s and starts at once; here at 2,000 s, and starts at the slot of 2,400 s
    assert jobs["small"]["finish_s"] - 2400 == pytest.approx(small["finish_s"])


def test_a_comparison_leaves_out_what_waits_for_ever(capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes without GPUs hold two of the eight models; means are of jobs that can run, the bound's too."""
    found = data(
        capsys, "compare", "--traces", "2", "--schedulers", "drf,optimus", "--count", "40", "--nodes", "20",
        "--gpus-per-node", "0", "--oversized", "queue",
    )  # fmt: skip
    rows = [row["metrics"] for row in (*found["schedulers"], found["bound"])]
    for row in rows:
        assert row["unfinished"]["mean"] == rows[0]["unfinished"]["mean"] > 0
        assert row["finished"]["mean"] + row["unfinished"]["mean"] == 40
        assert row["mean_jct_s"]["mean"] >= rows[-1]["mean_jct_s"]["mean"] > 0
    assert "wait for ever" in found["notes"][-1]


def test_bad_rows_can_be_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(OWN + "a,0,vgg-16,ten,1\nb,0,vgg-16,10,1\n", "utf-8")
    assert main(["schedule", "simulate", "--scheduler", "drf", "--trace", str(path), "--skip-bad-rows"]) == 0
    assert "1 skipped: bad rows" in capsys.readouterr().err


def test_overload_is_said_with_its_figure(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["schedule", "simulate", "--scheduler", "srtf", "--count", "20", "--nodes", "8"]
    assert main(run) == 0
    assert "warning: overload: " in capsys.readouterr().err
    assert main([*run, "--load", "50%", "--format", "json"]) == 0
    captured = capsys.readouterr()
    load = json.loads(captured.out)["load"]
    assert max(load["gpu_share"], load["cpu_share"]) == pytest.approx(0.5) and "overload" not in captured.err


TRACES = {
    "philly_jobs.csv": ("philly", ["--slot", "36000"]),
    "pollux_osdi21_workloads.csv": ("pollux", ["--part", "8", "--nodes", "64"]),
    "alibaba_openb_2023_pods.csv": ("openb", ["--cpus-per-node", "128", "--gpus-per-node", "8", "--slot", "36000"]),
}


@pytest.mark.parametrize("name", TRACES)
def test_public_traces(capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = shared_folder()
    if folder is None:
        pytest.skip("the public traces are not here")
    form, options = TRACES[name]
    trace = str(folder / "data" / "traces" / name)
    found = data(
        capsys, "simulate", "--scheduler", "drf", "--trace", trace, "--count", "30", "--load", "60%", *options
    )
    assert found["trace"]["format"] == form and found["metrics"]["finished"] == 30 and found["notes"]
