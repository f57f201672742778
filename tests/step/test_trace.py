"""The Chrome trace of a step: its form, and that its slices are the step's parts. Then in Perfetto itself."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import perfetto_ui
import pytest

from graphcost.analysis import analyze
from graphcost.cli.main import main
from graphcost.engine.input import InputPipeline
from graphcost.errors import UsageError
from graphcost.result import Analysis

US_TO_S = 1e-6
NS_TO_S = 1e-9
PARTS = ("input", "compute", "memory", "host", "communication")

STEPS: dict[str, dict[str, Any]] = {
    "one-gpu": {"gpus": 1, "batch": 4},
    "ring": {"gpus": 16, "batch": 8, "cluster": "aws-p3.16xlarge"},
    "parameter-servers": {"gpus": 8, "batch": 8, "arch": "ps"},
    "host-bound": {"gpus": 8, "batch": 1, "cluster": "dgx-h100"},
    "micro-batches": {"gpus": 16, "batch": 2, "accumulate": 3, "clip_grad": True, "precision": "amp-fp16"},
    "input-bound": {"gpus": 8, "batch": 8, "pipeline": InputPipeline(110e3, 200e6, 50.0, 2, prefetch=False)},
}


def made(name: str) -> Analysis:
    return analyze("zoo:resnet50", **STEPS[name])


def events(result: Analysis, phase: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(result.report("trace"))["traceEvents"] if event["ph"] == phase]


def lanes(result: Analysis) -> dict[int, str]:
    return {event["tid"]: event["args"]["name"] for event in events(result, "M") if event["name"] == "thread_name"}


def reported(result: Analysis) -> dict[str, float]:
    step = result.step
    return dict(
        zip(PARTS, (step.input_s, step.compute_s, step.memory_s, step.host_s, step.exposed_comm_s), strict=True)
    )


@pytest.mark.parametrize("name", STEPS)
def test_slices_of_a_part_add_up_to_it(name: str) -> None:
    result = made(name)
    sums: dict[str, float] = defaultdict(float)
    slices = events(result, "X")
    for piece in slices:
        sums[piece["args"]["part"]] += piece["dur"] * US_TO_S
    rounding = len(slices) * NS_TO_S  # ends are written to the nanosecond
    for part, seconds in reported(result).items():
        assert sums[part] == pytest.approx(seconds, abs=rounding), part
    lane_of = lanes(result)
    compute = sum(piece["dur"] for piece in slices if lane_of[piece["tid"]] == "compute")
    assert compute * US_TO_S == pytest.approx(result.step.step_s, abs=rounding)
    for what, seconds in {one.what: one.time_s for one in result.communication if one.bytes}.items():
        sent = sum(piece["dur"] for piece in slices if lane_of[piece["tid"]] == f"network: {what}")
        assert sent * US_TO_S == pytest.approx(seconds, abs=rounding), what


@pytest.mark.parametrize("name", STEPS)
def test_slices_of_a_lane_follow_each_other(name: str) -> None:
    result = made(name)
    by_lane: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for piece in events(result, "X"):
        by_lane[piece["tid"]].append(piece)
    assert by_lane.keys() == lanes(result).keys()
    for pieces in by_lane.values():
        for one, after in pairwise(pieces):
            assert one["ts"] >= 0 and one["dur"] >= 0
            assert after["ts"] >= one["ts"] + one["dur"] - 1e-3  # a nanosecond


def test_lanes_and_what_a_slice_says() -> None:
    result = made("ring")
    lane_of, known = lanes(result), {op.id for op in result.ops}
    assert list(lane_of.values()) == ["host", "compute", "input: copy", "network: gradients"]
    pieces = events(result, "X")
    first = next(piece for piece in pieces if piece["name"] == "conv1" and piece["cat"] == "forward")
    # conv1 reads 8 x 3 x 224 x 224 and 64 x 3 x 7 x 7 values and writes 8 x 64 x 112 x 112
    assert first["args"]["bytes"] == 4 * (8 * 3 * 224 * 224 + 64 * 3 * 7 * 7 + 8 * 64 * 112 * 112)
    assert first["args"]["flops"] == 2 * 8 * 64 * 112 * 112 * 3 * 7 * 7
    assert first["args"]["bound"] == first["args"]["part"] == "compute"
    assert first["args"]["operator"] in known
    for piece in pieces:
        if piece["args"]["part"] in ("compute", "memory"):
            assert {"operator", "bytes", "bound"} <= piece["args"].keys(), piece
    sent = [piece["args"]["bytes"] for piece in pieces if lane_of[piece["tid"]] == "network: gradients"]
    assert sum(sent) == result.training.gradient_bytes == 4 * 25_557_032


def test_several_models_are_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "zoo:mlp", "zoo:resnet18", "--batch", "2", "--format", "trace", "--quiet"]) == 0
    trace = json.loads(capsys.readouterr().out)
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert [name.partition(":")[0] for name in names] == ["mlp", "resnet18"]
    assert {event["pid"] for event in trace["traceEvents"]} == {1, 2}
    assert trace["displayTimeUnit"] == "ms"


def test_the_paper_profile_has_no_timeline() -> None:
    with pytest.raises(UsageError, match="the paper profile has no timeline; use --profile calibrated"):
        analyze("zoo:mlp", profile="paper").report("trace")


@pytest.mark.slow
@pytest.mark.skipif(bool(perfetto_ui.missing()), reason=f"Perfetto's page needs {perfetto_ui.missing()}")
@pytest.mark.parametrize("name", ["ring", "micro-batches"])
def test_perfetto_opens_it_and_counts_the_same(name: str, tmp_path: Path) -> None:
    """Perfetto's trace processor finds every slice, on its lane, unnested, and the parts as reported."""
    result = made(name)
    file = tmp_path / "step.json"
    file.write_text(result.report("trace"), "utf-8")
    on_lanes, by_part, depth, errors = perfetto_ui.ask(
        file,
        "select thread.name as lane, count(*) as slices from slice "
        "join thread_track on slice.track_id = thread_track.id join thread using (utid) group by lane",
        "select extract_arg(arg_set_id, 'args.part') as part, sum(dur) as ns, "
        "sum(extract_arg(arg_set_id, 'args.bytes')) as bytes from slice group by part",
        "select max(depth) as depth, count(*) as slices from slice",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    counts: dict[str, int] = defaultdict(int)
    for piece in result.timeline:
        counts[piece.lane] += 1
    assert {row["lane"]: row["slices"] for row in on_lanes} == counts
    assert depth == [{"depth": 0, "slices": len(result.timeline)}] and errors == []
    found = {row["part"]: row["ns"] * NS_TO_S for row in by_part}
    for part, seconds in reported(result).items():
        assert found.get(part, 0.0) == pytest.approx(seconds, abs=len(result.timeline) * NS_TO_S), part
    moved = sum(piece.bytes for piece in result.timeline if piece.part == "memory")
    assert next(row["bytes"] for row in by_part if row["part"] == "memory") == moved
