"""Training as a user runs it: a curve that a kill does not change, a policy that learns, bad input in one line."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphcost.cli.main import main
from graphcost.sim.learning.options import TrainingOptions
from graphcost.sim.setup import SetupOptions, set_up

pytest.importorskip("torch")

from graphcost.sim.learning.trainer import Trainer  # needs torch

TINY = ["--workload", "dl2-development", "--count", "8", "--nodes", "6"]
SHORT = [
    "--hidden", "16", "--warm-up-traces", "2", "--warm-up-updates", "60", "--updates", "60", "--critic-updates", "10",
    "--buffer", "256", "--batch", "64", "--validation-traces", "2", "--validate-every", "20",
]  # fmt: skip


def train(output: Path, *more: str) -> int:
    return main(["schedule", "train", *TINY, *SHORT, "--output", str(output), "--quiet", *more])


@pytest.mark.parametrize("clusters", ["1", "2"])
def test_a_killed_and_resumed_run_gives_the_same_curve_and_policy(tmp_path: Path, clusters: str) -> None:
    """SIGKILL once the first lines are there; every figure of the curve and every weight is equal afterwards."""
    import torch

    whole, cut = tmp_path / "whole.pt", tmp_path / "cut.pt"
    command = [
        sys.executable, "-m", "graphcost", "schedule", "train", *TINY, *SHORT, "--output", str(cut),
        "--log", str(tmp_path / "cut.csv"), "--clusters", clusters,
    ]  # fmt: skip
    running = subprocess.Popen(command, env={**os.environ}, stderr=subprocess.PIPE)
    log, until = tmp_path / "cut.csv", time.monotonic() + 240
    while not (log.exists() and log.read_text("utf-8").count("\n") >= 4) and running.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL, "it ended before it could be killed"
    assert running.stderr is not None
    running.stderr.close()
    before = log.read_text("utf-8")
    assert train(cut, "--resume", "--log", str(log), "--clusters", clusters) == 0
    assert train(whole, "--log", str(tmp_path / "whole.csv"), "--clusters", clusters) == 0
    after = log.read_text("utf-8")
    assert after.startswith(before) and len(after) > len(before)
    assert after == (tmp_path / "whole.csv").read_text("utf-8")
    one, other = (torch.load(path, weights_only=True)["weights"] for path in (whole, cut))
    assert all(torch.equal(one[name], other[name]) for name in one) and one.keys() == other.keys()
    rows = list(csv.DictReader(after.splitlines()))
    assert [row["phase"] for row in rows[:3]] == ["warm-up"] * 3 and rows[-1]["phase"] == "reinforce"
    assert float(rows[0]["policy_loss"]) > float(rows[2]["policy_loss"]) > 0


@pytest.mark.parametrize(
    "options",
    [
        {"replay": "plain", "network": "dense"},
        {"replay": "none", "credit": "slot", "discount": 0.9},
        {"critic": False, "explore": 0.0, "starting_bundle": False, "teacher": "fifo"},
        {"credit": "pace", "placement": "packed", "replay": "plain"},
        {"credit": "pace", "placement": "compact", "teacher": "compact"},
        {"credit": "pace"},
    ],
)
def test_every_variant_restores_in_the_middle(options: dict[str, object]) -> None:
    """In one process: the state after two records, restored into a new trainer, goes on as the first does."""
    setup = set_up(SetupOptions(workload="dl2-development", count=6, nodes=4))
    told = TrainingOptions(
        hidden=8, warm_up_traces=1, warm_up_updates=20, updates=20, critic_updates=4, buffer=128, batch=32,
        validation_traces=1, validate_every=10, **options,  # type: ignore[arg-type]
    )  # fmt: skip
    from copy import deepcopy

    first = Trainer(setup, told)
    records = first.run()
    early = [next(records), next(records)]
    kept = deepcopy(first.contents())
    late = list(records)
    second = Trainer(setup, told)
    second.restore(kept)
    assert second.records == early and list(second.run()) == late and len(late) >= 1
    assert first.progress_share == second.progress_share == 1.0


def test_training_and_test_traces_are_apart() -> None:
    from graphcost.sim.workloads import SEEDS, Split

    setup = set_up(SetupOptions(workload="dl2-development", count=6, nodes=4))
    trainer = Trainer(setup, TrainingOptions(hidden=8))
    seeds = {seed for seed, _ in trainer._validation}
    assert set(trainer._train) <= set(SEEDS[Split.TRAIN]) and seeds <= set(SEEDS[Split.VALIDATION])


def test_jobs_that_wait_for_ever_are_no_part_of_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes without GPUs hold some of the models; a policy is judged by what it can finish."""
    log = tmp_path / "log.csv"
    few = ["--gpus-per-node", "0", "--count", "30", "--updates", "0"]
    assert train(tmp_path / "p.pt", *few) == 2
    assert "can never run" in capsys.readouterr().err
    assert train(tmp_path / "p.pt", *few, "--oversized", "queue", "--log", str(log)) == 0
    assert all(float(row["mean_jct_s"]) < 1e9 for row in csv.DictReader(log.read_text("utf-8").splitlines()))


@pytest.mark.slow
def test_it_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Imitation stays within 5 % of DRF; reinforcement by either credit takes a quarter off it, on test traces."""
    world = ["--workload", "dl2-development", "--count", "20", "--nodes", "12"]
    short = ["--hidden", "16", "--warm-up-traces", "4", "--warm-up-updates", "300", "--validation-traces", "4"]
    found = {}
    for name, told in {
        "imitation": ["--updates", "0"],
        "step": ["--updates", "800"],
        "pace": ["--updates", "400", "--credit", "pace", "--learning-rate", "0.001"],
    }.items():
        output = str(tmp_path / f"{name}.pt")
        assert main(["schedule", "train", *world, *short, *told, "--output", output, "--quiet"]) == 0
        capsys.readouterr()
        compare = ["schedule", "compare", *world, "--traces", "8", "--schedulers", "drf", "--policy", output]
        assert main([*compare, "--format", "json", "--quiet"]) == 0
        (difference,) = json.loads(capsys.readouterr().out)["differences"]
        assert (difference["scheduler"], difference["against"]) == ("dl2", "drf")
        found[name] = difference["relative"]["mean"]
    assert abs(found["imitation"]) < 0.05
    assert found["step"] < -0.25 and found["pace"] < -0.25


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.6, 0.9])
def test_the_policy_of_the_zoo_keeps_up_with_compact(load: float) -> None:
    """``compact`` knows exact speeds, the policy none; validation traces that did not choose it, other loads."""
    from graphcost.sched import SCHEDULERS
    from graphcost.sched.dl2.checkpoint import load_policy
    from graphcost.sim.learning.validating import mean_jct_s
    from graphcost.sim.workloads import Split, seeds_of

    setup = set_up(SetupOptions(workload="zoo", load=load))
    traces = [(seed, setup.draw(seed, Split.VALIDATION)[0]) for seed in seeds_of(Split.VALIDATION, 3, start=100)]
    policy, _ = load_policy(Path(__file__).parents[2] / "benchmarks" / "policies" / "dl2-zoo.pt")
    names = ("compact", "optimus-compact", "optimus")
    compact, same_place, other_place = (mean_jct_s(setup, SCHEDULERS[name], traces) for name in names)
    assert mean_jct_s(setup, policy.scheduler(), traces) < 1.1 * compact
    assert compact < 0.95 * same_place < 0.95 * other_place


def test_compare_names_policies_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, curve, cdf = tmp_path / "p.pt", tmp_path / "curve.svg", tmp_path / "cdf.svg"
    assert train(policy, "--updates", "0", "--plot", str(curve)) == 0
    out = capsys.readouterr().out
    assert "after the warm-up" in out and "no test of it" in out
    assert "mean completion on the validation traces" in curve.read_text("utf-8")
    other = policy.with_name("q.pt")
    other.write_bytes(policy.read_bytes())
    compare = ["schedule", "compare", *TINY, "--traces", "2", "--schedulers", "drf,fifo", "--quiet"]
    assert main([*compare, "--policy", str(policy), "--plot", str(cdf)]) == 0
    out = capsys.readouterr().out
    assert "dl2 against drf: " in out and "dl2 against fifo: " in out and "fifo against" not in out
    assert ">dl2<" in cdf.read_text("utf-8") and ">bound<" in cdf.read_text("utf-8")
    assert main([*compare, "--policy", str(policy), "--policy", str(other), "--sampled"]) == 0
    assert "dl2:q against dl2:p: +0.0 %" in capsys.readouterr().out
    release = ["schedule", "compare", "--workload", "dl2-release", "--count", "3", "--nodes", "4", "--traces", "1"]
    assert main([*release, "--schedulers", "drf", "--policy", str(policy)]) == 0
    assert "trained without" not in capsys.readouterr().err  # the same eight models


def test_a_model_that_a_policy_does_not_know(tmp_path: Path) -> None:
    from graphcost.cli.schedule_policies import new_models
    from graphcost.sched.dl2.checkpoint import save_policy
    from graphcost.sched.dl2.encoding import PolicySpec
    from graphcost.sched.dl2.network import Network

    policy = tmp_path / "p.pt"
    setup = set_up(SetupOptions(workload="dl2-development", count=6, nodes=4))
    known = tuple(model.name for model in setup.workload.models if model.name != "wlm")
    save_policy(policy, Network(PolicySpec(known, hidden=8), value=False, seed=0), {})
    (note,) = new_models([policy], setup)
    assert note == f"{policy}: trained without wlm; it tells none of them apart"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--output", "p.zip"], 2, "--output p.zip: a policy's suffix is .pt"),
        (["--output", "no/p.pt"], 2, "--output no/p.pt: no folder no"),
        (["--output", "p.pt", "--teacher", "dfr"], 2, "no scheduler named 'dfr'; did you mean 'drf'?"),
        (["--output", "p.pt", "--network", "densed"], 2, "no network named 'densed'; did you mean 'dense'?"),
        (["--output", "p.pt", "--replay", "plane"], 2, "no replay named 'plane'; did you mean 'plain'?"),
        (["--output", "p.pt", "--credit", "stepp"], 2, "no credit named 'stepp'; did you mean 'step'?"),
        (["--output", "p.pt", "--window", "0"], 2, "--window 0: at least 1"),
        (["--output", "p.pt", "--learning-rate", "3"], 2, "--learning-rate 3: between 0 and 1"),
        (["--output", "p.pt", "--batch", "99999"], 2, "--batch 99999: more samples than --buffer 8192 holds"),
        (["--output", "p.pt", "--resume"], 3, "p.training.pt: cannot be read (No such file or directory)"),
        (["--output", "p.pt", "--plot", "p.txt"], 2, "--plot p.txt: no picture of suffix '.txt'"),
    ],
)  # fmt: skip
def test_bad_input(
    arguments: list[str], code: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["schedule", "train", *TINY, *arguments]) == code
    err = capsys.readouterr().err
    assert line in err and "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_training_states_are_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "p.pt"
    assert train(policy, "--updates", "0") == 0
    assert train(policy, "--updates", "0") == 2
    assert "a training state is there; --resume goes on with it" in capsys.readouterr().err
    assert train(policy, "--resume", "--entropy", "0.5") == 2
    assert "made with entropy 0.05, not 0.5; resume with the same" in capsys.readouterr().err
    assert train(policy, "--resume", "--max-workers", "3") == 2
    assert "made with setup" in capsys.readouterr().err
    assert train(policy, "--overwrite", "--updates", "0") == 0
    state = policy.with_suffix(".training.pt")
    state.write_bytes(state.read_bytes()[:5000])
    assert train(policy, "--resume") == 3
    assert "no file that `schedule train` writes; a training state was expected" in capsys.readouterr().err
    compare = ["schedule", "compare", *TINY, "--traces", "1", "--schedulers", "drf", "--policy"]
    assert main([*compare, str(state)]) == 3 and main([*compare, str(tmp_path / "none.pt")]) == 3
