"""DL2 against the others: train on training traces, choose on validation traces, report on test traces.

    python -m benchmarks.dl2_experiments FOLDER [NAME...]     # all that the machine's data allows, one after another

Every experiment runs the commands that it prints, so that each can be repeated alone. Policies, learning curves and
plots land in FOLDER; the table on stdout is markdown. ``large-table`` needs the measured speeds that are not part of
this project (GRAPHCOST_SHARED).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from graphcost.cli.main import main as graphcost

SEEDS = (0, 1, 2)
BASELINES = "drf,optimus,optimus-exact"


@dataclass(frozen=True, slots=True)
class Experiment:
    """``world`` trains; ``tested_on``: label -> setup of test traces; where empty, its name and ``world``."""

    world: tuple[str, ...]
    training: tuple[str, ...] = ()
    tested_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    traces: int = 40
    seed: int = 0
    schedulers: str = BASELINES
    needs: Path | None = field(default=None)


def _words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


def _table() -> Path:
    return Path(os.environ.get("GRAPHCOST_SHARED", "")) / "data" / "dl2_speed.csv"


def _loads(name: str) -> dict[str, tuple[str, ...]]:
    return {f"{name} {load}": _words(f"--workload zoo --load {load}") for load in ("60%", "75%", "90%")}


def experiments() -> dict[str, Experiment]:
    """By name."""
    release = _words("--workload dl2-release --nodes 48 --count 60")
    development = _words("--workload dl2-development")
    table = ("--workload", "dl2-release", "--speeds", str(_table()), "--speed-source", "pengyanghua")
    pace = _words("--credit pace --explore 0.3 --entropy 0.05 --replay plain --learning-rate 0.001")
    pace += _words("--warm-up-updates 300 --updates 2000")
    many_jobs = _words(
        "--window 64 --updates-per-slot 8 --warm-up-traces 3 --validation-traces 2 --validate-every 1000"
    )
    mid = _words("--nodes 160 --count 100")
    zoo = _words("--workload zoo --load 75%")
    imitation = _words("--warm-up-traces 20 --warm-up-updates 1500 --updates 0 --validation-traces 5")
    found = {
        "imitate-drf": Experiment(release, _words("--updates 0"), schedulers="drf"),
        "imitate-optimus": Experiment(release, _words("--updates 0 --teacher optimus"), schedulers="optimus"),
        "release": Experiment(release, pace),
        "release-step": Experiment(release, _words("--warm-up-updates 500 --updates 2500")),
        "development": Experiment(development, (*pace, "--hidden", "32")),
        "development-step": Experiment(development, _words("--warm-up-updates 500 --updates 3000 --hidden 32")),
        "large": Experiment(
            ("--workload", "dl2-release", *mid), (*pace, *many_jobs), {"large": _words("--workload dl2-release")},
            traces=10,
        ),
        "large-table": Experiment(
            (*table, *mid), (*pace, *many_jobs), {"large-table": table}, traces=10, needs=_table()
        ),
        "zoo": Experiment(
            zoo, (*pace, *_words("--placement compact --updates 5000 --validation-traces 5")),
            _loads("zoo"), schedulers=f"{BASELINES},optimus-compact",
        ),
        "zoo-imitation": Experiment(
            zoo, (*imitation, *_words("--teacher compact --placement compact")),
            _loads("zoo-imitation"), traces=100, schedulers=f"{BASELINES},optimus-compact,compact,pollux",
        ),
        "zoo-packed": Experiment(
            zoo, (*imitation, *_words("--teacher optimus-exact --placement packed")),
            schedulers=f"{BASELINES},pollux",
        ),
        "zoo-step": Experiment(
            zoo,
            _words("--warm-up-updates 500 --updates 3000 --validation-traces 5"),
            traces=20, schedulers=f"{BASELINES},pollux",
        ),
    }  # fmt: skip
    short = _words("--warm-up-updates 200 --updates 1000 --hidden 32 --validation-traces 3 --validate-every 500")
    variants = {
        "whole": "", "without-replay": "--replay none", "without-exploration": "--explore 0",
        "without-critic": "--no-critic", "slot-credit": "--credit slot",
    }  # fmt: skip
    for seed in SEEDS:
        for name, options in variants.items():
            told = (*short, *_words(options))
            found[f"{name}-{seed}"] = Experiment(development, told, traces=10, seed=seed, schedulers="drf")
    return found


def run(name: str, one: Experiment, folder: Path) -> list[str]:
    """Rows of the table: the policy against each scheduler, then the bound."""
    policy = str(folder / f"{name}.pt")
    curve = ("--log", str(folder / f"{name}.csv"), "--plot", str(folder / f"{name}-curve.svg"))
    _call(("schedule", "train", *one.world, *one.training, "--seed", str(one.seed), "--output", policy, *curve,
           "--overwrite"))  # fmt: skip
    rows = []
    for label, world in (one.tested_on or {name: one.world}).items():
        rows += _tested(label, one, policy, world, folder)
    return rows


def _tested(label: str, one: Experiment, policy: str, world: tuple[str, ...], folder: Path) -> list[str]:
    file = label.replace(" ", "-").replace("%", "")
    compare = ("schedule", "compare", *world, "--traces", str(one.traces), "--schedulers", one.schedulers)
    cdf = ("--plot", str(folder / f"{file}-times.svg"), "--format", "json")
    text = _call((*compare, "--policy", policy, *cdf))
    found = json.loads(text)
    (folder / f"{file}.json").write_text(text, "utf-8")
    means = {row["scheduler"]: row["metrics"]["mean_jct_s"] for row in (*found["schedulers"], found["bound"])}
    rows = []
    for difference in found["differences"]:
        if difference["scheduler"] == "dl2":
            other, share = difference["against"], difference["relative"]
            rows.append(
                f"| {label} | {_jct(means['dl2'])} | {other} | {_jct(means[other])} | {100 * share['mean']:+.1f} % "
                f"({100 * share['low']:+.1f} to {100 * share['high']:+.1f}) | "
                f"{difference['sooner_on']} of {one.traces} |"
            )
    least = means["bound"]["mean"]
    rows.append(
        f"| {label} | | bound | {_jct(means['bound'])} | {100 * (means['dl2']['mean'] / least - 1):+.1f} % | |"
    )
    return rows


def _jct(figure: dict[str, float]) -> str:
    return f"{figure['mean']:,.0f} s"


def _call(arguments: Sequence[str]) -> str:
    print("graphcost", shlex.join(arguments), file=sys.stderr, flush=True)
    out = StringIO()
    with redirect_stdout(out):
        code = graphcost(list(arguments))
    if code:
        raise SystemExit(f"exit {code} of: graphcost {shlex.join(arguments)}")
    return out.getvalue()


def main(arguments: Sequence[str]) -> None:
    """A folder, and names of experiments."""
    known = experiments()
    unknown = set(arguments[1:]) - set(known)
    if not arguments or unknown:
        raise SystemExit(
            f"{__doc__}\nknown: {', '.join(known)}" + (f"\nunknown: {', '.join(unknown)}" * bool(unknown))
        )
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    print("| experiment | DL2 | against | mean completion | DL2's difference | sooner on |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in arguments[1:] or known:
        one = known[name]
        if one.needs is not None and not one.needs.is_file():
            print(f"{name}: needs {one.needs}", file=sys.stderr)
            continue
        print("\n".join(run(name, one, folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
