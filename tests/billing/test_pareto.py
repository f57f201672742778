"""The frontier of time, money and energy: its definition, and the command."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from helpers import RESNET50, without_batch
from hypothesis import given
from hypothesis import strategies as st

from graphcost.cli.main import main
from graphcost.device_db import load_cluster
from graphcost.errors import PlacementError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.pareto import Objectives, Standing, frontier_of, pareto_model, priced_clusters
from graphcost.placing import AnalysisOptions

few_values = st.lists(st.tuples(*[st.integers(0, 4).map(float)] * 3), max_size=30)
many_values = st.lists(st.tuples(*[st.floats(0, 1e6)] * 3), max_size=30)


def beats(one: Objectives, other: Objectives) -> bool:
    """The definition, word by word: nowhere worse, somewhere better."""
    return not any(a > b for a, b in zip(one, other, strict=True)) and any(
        a < b for a, b in zip(one, other, strict=True)
    )


def by_definition(values: Sequence[Objectives]) -> set[int]:
    return {i for i, value in enumerate(values) if not any(beats(other, value) for other in values)}


@given(few_values | many_values)
def test_the_frontier_is_what_its_definition_says(values: list[Objectives]) -> None:
    found = frontier_of(values)
    frontier = {i for i, best in enumerate(found) if best is None}
    assert frontier == by_definition(values)
    for place, best in enumerate(found):
        if best is not None:
            assert best in frontier and beats(values[best], values[place])


@given(few_values, st.integers(0, 4), st.sampled_from([2.0, 10.0]))
def test_units_do_not_matter(values: list[Objectives], shift: int, factor: float) -> None:
    scaled = [(factor * a, b + shift, c) for a, b, c in values]
    assert [one is None for one in frontier_of(scaled)] == [one is None for one in frontier_of(values)]


def options(**changes) -> AnalysisOptions:
    return AnalysisOptions(load=LoadOptions(batch=32), **changes)


def test_points_of_real_clusters() -> None:
    found = pareto_model(str(RESNET50), options(), ["aws-p3.16xlarge", "aws-p4d", "dgx-a100"], [1, 8, 16])
    judged = [p for p in found.points if p.standing in (Standing.FRONTIER, Standing.DOMINATED)]
    values = [(p.s, p.usd, p.kwh) for p in judged]
    frontier = {i for i, point in enumerate(judged) if point.standing is Standing.FRONTIER}
    assert frontier == by_definition(values) and 0 < len(frontier) < len(judged)
    for point in judged:
        if point.dominated_by is not None:
            best = found.points[point.dominated_by]
            assert best.standing is Standing.FRONTIER
            assert beats((best.s, best.usd, best.kwh), (point.s, point.usd, point.kwh))
    unpriced = [p for p in found.points if p.analysis.placement.cluster == "dgx-a100"]
    assert unpriced and {p.standing for p in unpriced} == {Standing.NOT_JUDGED}
    hosts = [p for p in found.points if p.analysis.placement.ps]
    assert hosts and {p.standing for p in hosts} == {Standing.NOT_JUDGED}
    standings = [list(Standing).index(point.standing) for point in found.points]
    assert standings == sorted(standings)


def test_nothing_is_lost() -> None:
    """Every cluster, count and architecture is a point or refused."""
    archs = ("single", "local", "allreduce", "zero3")
    found = pareto_model(str(RESNET50), options(), ["aws-p3.16xlarge", "aws-p4d"], [1, 16], archs)
    places = [p.analysis.placement for p in found.points]
    seen = {(place.cluster, place.gpus, place.arch) for place in places}
    seen |= {(one.cluster, one.gpus, one.arch) for one in found.refused}
    assert seen == {(c, g, a) for c in ("aws-p3.16xlarge", "aws-p4d") for g in (1, 16) for a in archs}
    assert len(places) + len(found.refused) == len(seen)


def test_energy_is_compared_without_servers() -> None:
    """azure-nd-a100-v4 tells its servers' power, aws-p4d does not: the same GPUs are judged alike."""
    found = pareto_model(str(RESNET50), options(), ["azure-nd-a100-v4", "aws-p4d"], [1], ["single"])
    one, other = found.points
    assert one.kwh == pytest.approx(other.kwh)
    assert one.analysis.bill.energy.energy_j != pytest.approx(other.analysis.bill.energy.energy_j)


def test_what_does_not_fit_is_on_no_frontier() -> None:
    found = pareto_model(
        str(RESNET50), AnalysisOptions(load=LoadOptions(batch=4096)), ["aws-p3.16xlarge"], [8], ["allreduce"]
    )
    assert [p.standing for p in found.points] == [Standing.DOES_NOT_FIT]


def test_a_cluster_that_cannot_is_named_and_the_others_go_on() -> None:
    found = pareto_model(str(RESNET50), options(precision="amp-bf16"), ["aws-p2.8xlarge", "aws-p4d"], [8])
    assert {p.analysis.placement.cluster for p in found.points} == {"aws-p4d"}
    assert any(one.cluster == "aws-p2.8xlarge" and "bfloat16" in one.reason for one in found.refused)
    with pytest.raises(PlacementError, match="one server"):
        pareto_model(str(RESNET50), options(), ["aws-p4d"], [16], ["local"])


def test_a_model_without_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no batch dimension"):
        pareto_model(without_batch(tmp_path), AnalysisOptions(), ["aws-p4d"], [1])


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["compare", str(RESNET50), "--batch", "32", "--quiet", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("--pareto", "--cluster", "aws-p3.16xlarge, aws-p4d,dgx-a100", "--gpus", "1,8,16")
    code, text, _ = run(capsys, *chosen)
    assert code == 0 and "on the frontier" in text and "dominated by 1" in text and "power shares assumed" in text
    assert "not judged: cost: dgx-a100 has no price" in text
    data = json.loads(run(capsys, *chosen, "--format", "json")[1])
    assert data["schema_version"] == 1 and data["command"] == "compare"
    (one,) = data["pareto"]
    assert {point["cluster"] for point in one["points"]} == {"aws-p3.16xlarge", "aws-p4d", "dgx-a100"}
    assert all(point["usd_per_million_samples"] is None for point in one["points"] if point["cluster"] == "dgx-a100")
    for point in one["points"]:
        if point["dominated_by"] is not None:
            assert one["points"][point["dominated_by"]]["standing"] == "frontier"
    rows = list(csv.DictReader(StringIO(run(capsys, *chosen, "--format", "csv")[1])))
    assert [row["standing"] for row in rows] == [point["standing"] for point in one["points"]]
    table = run(capsys, *chosen, "--format", "markdown")[1]
    assert table.count("\n| ") == len(rows) + 1


def test_every_cluster_with_a_price_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(run(capsys, "--pareto", "--arch", "allreduce", "--format", "json")[1])
    tried = {point["cluster"] for point in data["pareto"][0]["points"]}
    assert tried == set(priced_clusters()) and "dgx-a100" not in tried and len(tried) >= 20
    assert all(load_cluster(name).price is not None for name in tried)


def test_a_price_of_ones_own_makes_any_cluster_comparable(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("--pareto", "--cluster", "dgx-a100,dgx-h100", "--price-per-gpu-hour", "2", "--arch", "allreduce")
    points = json.loads(run(capsys, *chosen, "--format", "json")[1])["pareto"][0]["points"]
    assert {point["standing"] for point in points} <= {"frontier", "dominated"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cluster", "aws-p4d,dgx-a100"), "several clusters go with --pareto"),
        (("--pareto", "--cluster", "aws-p4,dgx-a100"), "no cluster named 'aws-p4'; did you mean"),
        (("--pareto", "--cluster", ","), "name clusters"),
        (("--pareto", "--gpus", "0"), "--gpus 0"),
    ],
)
def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2 and out == "" and says in err and "Traceback" not in err
