"""Pages and plots of the fleet commands: what they draw, and that nothing made from a generated table hides it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_tables import CASES, write

from graphcost.cli.main import main
from graphcost.fleet import characterize, hardware_of, project, study_assumptions, sweep
from graphcost.fleet.population import load_population
from graphcost.report.fleet import render_fleet
from graphcost.report.fleet_figures import Bars, Curves, Result, figures_of, words

COMMANDS: dict[str, tuple[str, ...]] = {
    "characterize": ("characterize",), "project": ("project",), "sweep": ("sweep",),
    "sensitivity": ("sweep", "--sensitivity"),
}  # fmt: skip
RUNS: dict[str, Callable[..., Any]] = {
    "characterize": characterize, "project": project, "sweep": sweep, "sensitivity": study_assumptions,
}  # fmt: skip
BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("jobs") / "jobs.parquet")
    assert main(["fleet", "generate", "--seed", "3", "--count", "2000", "--output", file, "--quiet"]) == 0
    return file


def run(name: str, file: str) -> Any:
    found: Result = RUNS[name](file, hardware_of(load_population().cluster))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_figures_are_whole(generated: str, name: str) -> None:
    """Bars of a breakdown add up, distributions rise to one, every value is on its axis."""
    groups = figures_of(run(name, generated))
    drawn = [figure for group in groups for figure in group.figures]
    assert drawn
    for figure in drawn:
        if isinstance(figure, Bars):
            for at, label in enumerate(figure.labels):
                whole = sum(one.values[at] for one in figure.series)
                assert whole == pytest.approx(1.0), (figure.title, label)
            continue
        assert figure.curves
        for curve in figure.curves:
            xs, ys = zip(*curve.points, strict=True)
            assert list(xs) == sorted(xs), (figure.title, curve.name)
            if name in ("characterize", "project"):
                assert list(ys) == sorted(ys) and ys[-1] <= 1 + 1e-12, (figure.title, curve.name)
            assert figure.x != "share" or (xs[0] >= 0 and xs[-1] <= 1)
            assert figure.x == "share" or xs[0] > 0


def test_figures_say_what_the_result_says(generated: str) -> None:
    found = run("characterize", generated)
    types = next(f for g in figures_of(found) for f in g.figures if isinstance(f, Bars) and "occupy" in f.title)
    ps = next(one for one in types.series if one.name == "PS/Worker")
    stats = next(one for one in found.types if one.type == "PS/Worker")
    assert ps.values == (stats.job_share, stats.cnode_share) and types.labels == ("jobs", "cNodes")
    moved = run("project", generated)
    local = moved.targets[0]
    curves = [f for g in figures_of(moved) for f in g.figures if isinstance(f, Curves)]
    middle = next(x for x, y in curves[0].curves[0].points if y == 0.5)
    assert middle == local.speedup_quantiles[moved.levels.index(0.5)]
    assert (
        sum(local.parts_after.values()) == pytest.approx(1) and local.parts_after["input"] == local.input_share_after
    )
    swept = run("sweep", generated)
    panel = next(f for g in figures_of(swept) for f in g.figures if f.title == "PS/Worker")
    ethernet = next(curve for curve in panel.curves if curve.name == "Ethernet")
    assert ethernet.points[0][0] == 10 / 25 and ethernet.points[-1] == (4.0, swept.ethernet_speedup)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_of_a_generated_table_says_synthetic_at_every_figure(generated: str, name: str) -> None:
    found = run(name, generated)
    page = render_fleet(found, "html")
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert captions and all(caption.endswith("(synthetic)") for caption in captions)
    assert "<strong>SYNTHETIC population</strong>, drawn from declared distributions" in page
    assert re.search(r"<title>[^<]*\(synthetic\)</title>", page) and "http://" not in page.partition("<script")[0]


def test_a_measured_table_is_not_called_synthetic(tmp_path: Path) -> None:
    file = write(tmp_path / "jobs.csv", CASES)
    for name in COMMANDS:
        body = render_fleet(run(name, file), "html").partition("<script")[0]
        assert "synthetic" not in body.lower() and "<figcaption>" in body


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("suffix", BEGINS)
def test_plots_are_the_same_bytes_twice_and_say_synthetic(
    generated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, name: str
) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / f"{which}{suffix}" for which in "ab"]
    plots = [word for file in files for word in ("--plot", str(file))]
    assert main(["fleet", *COMMANDS[name], generated, "--quiet", *plots]) == 0
    first, second = (file.read_bytes() for file in files)
    assert first == second and first.startswith(BEGINS[suffix])
    if suffix == ".svg":
        text = first.decode()
        assert "SYNTHETIC population" in text and "(synthetic)</text>" in text


def test_outputs_go_where_their_suffix_says(
    generated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, data, jobs = tmp_path / "r.html", tmp_path / "r.json", tmp_path / "per_job.parquet"
    assert main(["fleet", "project", generated, "--output", str(page), "--output", str(data)]) == 0
    assert capsys.readouterr().out == "" and page.read_text().startswith("<!doctype html>")
    assert main(["fleet", "project", generated, "--output", str(jobs), "--output", str(page)]) == 0
    assert jobs.read_bytes()[:4] == b"PAR1"
    assert main(["fleet", "characterize", generated, "--format", "html"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    for command, file, says in (
        ("sweep", "x.parquet", "writes no jobs"),
        ("characterize", "x.xlsx", "jobs are written as .parquet or .csv"),
        ("characterize", "nowhere/x.html", "no folder nowhere"),
    ):
        assert main(["fleet", command, generated, "--output", file]) == 2
        assert says in capsys.readouterr().err
    assert main(["fleet", "project", generated, "--output", "a.csv", "--output", "b.csv"]) == 2
    assert "jobs are written to a.csv already" in capsys.readouterr().err


def test_jobs_that_nothing_can_be_drawn_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No PS/Worker jobs; jobs that take no time; a model that fits nowhere."""
    idle = [("idle", "single", 1, 32, 0, 0, 0, 0, 0)]
    huge = [("huge", "ps", 8, 32, 1e6, 1e12, 1e10, 1e15, 0)]
    for index, rows in enumerate((CASES[:1], idle, huge)):
        file = write(tmp_path / f"{index}.csv", rows)
        for name in COMMANDS.values():
            made = [str(tmp_path / f"{index}{suffix}") for suffix in (".html", ".png")]
            assert main(["fleet", *name, file, "--output", made[0], "--plot", made[1]]) == 0, (rows, name)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [("share", 0.345, "34.5 %"), ("count", 1024, "1,024"), ("times", 1.74, "1.74x"), ("times", 1 / 64, "1/64x"),
     ("times", 0.01, "0.01x"), ("times", 0.25, "0.25x"), ("times", 0.000976562, "1/1024x"), ("count", 2e6, "2.00 M")],
)  # fmt: skip
def test_values_in_words(kind: str, value: float, said: str) -> None:
    assert words(kind, value) == said
