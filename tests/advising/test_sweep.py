"""Sweeps against ``analyze`` at every value, against the paper's equations, and as texts that users write."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from importlib.resources import files
from math import log
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers import VGG19
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_product import NVLINK, UTILISATION, one_product, paper, rest_s, ring_bytes
from test_schema import schema_of

from graphcost.analysis import analyze_with
from graphcost.cli.main import main
from graphcost.errors import UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions
from graphcost.report.sweep import SWEEP_FORMATS, render_sweep
from graphcost.resources import RESOURCES, values_of
from graphcost.result import SCHEMA_VERSION, ModelInfo, PlacementInfo
from graphcost.sweeping import sweep_model

GBIT = 1e9 / 8


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("network", "10,25,100Gb/s", (10 * GBIT, 25 * GBIT, 100 * GBIT)),
        ("network", "900Mb/s, 1Gb/s", (0.9 * GBIT, 1 * GBIT)),
        ("network", "3.125GB/s,25Gb/s", (25 * GBIT,)),  # the same rate once
        ("network", "10..1000Gb/s:3", (10 * GBIT, 100 * GBIT, 1000 * GBIT)),
        ("network", "100..1Gb/s:3", (100 * GBIT, 10 * GBIT, 1 * GBIT)),
        ("nvlink", "50,300GB/s", (50e9, 300e9)),
        ("peak", "8..64TFLOP/s:4", (8e12, 16e12, 32e12, 64e12)),
        ("batch", "1..64:4", (1, 4, 16, 64)),
        ("batch", "1..4:3,64", (1, 2, 4, 64)),
        ("gpus", "8,4", (8, 4)),
    ],
)
def test_values(name: str, text: str, values: tuple[float, ...]) -> None:
    assert values_of(RESOURCES[name], text) == pytest.approx(values)


def test_a_range_has_five_values_and_exact_ends() -> None:
    found = values_of(RESOURCES["network"], "10..100Gb/s")
    assert len(found) == 5 and (found[0], found[-1]) == (10 * GBIT, 100 * GBIT)


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        ("netwrk=10Gb/s", "no resource named 'netwrk'; did you mean 'network'?"),
        ("network", "write it as RESOURCE=VALUES"),
        ("network=", "write it as RESOURCE=VALUES"),
        ("network=10", "'10' is not a bandwidth; write it like 25Gb/s"),
        ("network=10,fastGb/s", "'fastGb/s' is not a quantity"),
        ("network=10,,25Gb/s", "a value is missing between the commas"),
        ("network=0Gb/s", "must be more than zero and finite"),
        ("network=1..2Gb/s:1", "a range ends in the number of its values, 2 to 1000, not '1'"),
        ("network=1..2Gb/s:many", "not 'many'"),
        ("batch=1.5", "'1.5' is not a whole number of at least 1"),
        ("batch=0", "'0' is not a whole number of at least 1"),
        ("peak=10GB/s", "'10GB/s' is not a compute rate"),
    ],
)
def test_bad_values_exit_2_in_one_line(capsys: pytest.CaptureFixture[str], vary: str, says: str) -> None:
    code = main(["sweep", "zoo:mlp", "--vary", vary])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert says in err and err.count("\n") == 1


def test_too_many_combinations_are_refused() -> None:
    many = {"network": [float(n) for n in range(1, 301)], "pcie": [float(n) for n in range(1, 301)]}
    with pytest.raises(UsageError, match="90,000 combinations: at most 10,000 rows"):
        sweep_model("zoo:mlp", AnalysisOptions(gpus=8), many, grid=True)
    with pytest.raises(UsageError, match="nothing to vary"):
        sweep_model("zoo:mlp", AnalysisOptions(gpus=8), {})


def test_networks_of_the_study_by_hand(tmp_path: Path) -> None:
    """Table III's 10, 25 and 100 Gb/s: T_d + T_c + S_w / (e B) + S_w / (e NVLink)."""
    source = str(one_product(tmp_path / "m.onnx"))
    found = sweep_model(source, paper(), {"network": [10 * GBIT, 25 * GBIT, 100 * GBIT]})
    for row, gbit in zip(found.rows, (10, 25, 100), strict=True):
        weight_s = ring_bytes(16) / UTILISATION * (1 / (gbit * GBIT) + 1 / NVLINK)
        assert row.outcome is not None
        assert row.outcome.step.step_s == pytest.approx(rest_s(64) + weight_s)
        assert row.speedup == pytest.approx(found.base.step.step_s / (rest_s(64) + weight_s))
        assert row.throughput_speedup == pytest.approx(row.speedup)
    assert found.rows[1].speedup == pytest.approx(1.0)


def test_elasticities_by_hand(tmp_path: Path) -> None:
    """A step of parts that are each one over a rate: minus that part's share, by a central difference."""
    source = str(one_product(tmp_path / "m.onnx"))
    names = ("network", "nvlink", "pcie", "peak", "mem-bandwidth", "gpus")
    found = sweep_model(source, paper(), {name: [1e10 if name != "gpus" else 8.0] for name in names})
    by_name = {one.resource: one for one in found.elasticities}
    step = found.base.step
    network_s = ring_bytes(16) / (UTILISATION * 25 * GBIT)
    others_s = step.step_s - network_s
    exact = log((others_s + network_s / 1.05) / (others_s + network_s * 1.05)) / (2 * log(1.05))
    assert by_name["network"].step == pytest.approx(exact)
    shares = {
        "network": network_s, "nvlink": step.exposed_comm_s - network_s, "pcie": step.input_s,
        "peak": step.compute_s, "mem-bandwidth": step.memory_s,
    }  # fmt: skip
    for name, part_s in shares.items():
        assert by_name[name].step == pytest.approx(-part_s / step.step_s, abs=2e-3)
        assert by_name[name].throughput == pytest.approx(part_s / step.step_s, abs=2e-3)
    # All rates together: twice as fast everything is twice as fast.
    assert sum(one.step or 0.0 for name, one in by_name.items() if name != "gpus") == pytest.approx(-1, abs=2e-3)
    order = [abs(one.step or 0.0) for one in found.elasticities]
    assert order == sorted(order, reverse=True)


rates = {
    "network": st.floats(1e8, 1e12), "nvlink": st.floats(1e9, 1e12), "pcie": st.floats(1e8, 1e11),
    "mem-bandwidth": st.floats(1e11, 1e13), "peak": st.floats(1e12, 1e15), "batch": st.integers(1, 64),
    "gpus": st.integers(1, 40), "accumulate": st.integers(1, 4),
}  # fmt: skip
values = st.sampled_from(sorted(rates)).flatmap(lambda name: st.tuples(st.just(name), rates[name].map(float)))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(
    first=values,
    second=values,
    profile=st.sampled_from(["paper", "calibrated"]),
    arch=st.sampled_from([None, "ps", "allreduce", "pearl", "zero2"]),
)
def test_every_row_is_what_analyze_says(
    first: tuple[str, float], second: tuple[str, float], profile: str, arch: str | None
) -> None:
    options = AnalysisOptions(arch=arch, gpus=16 if arch != "pearl" else 8, profile=profile, cluster="dgx1-v100")
    varied: dict[str, list[float]] = {}
    for name, value in (first, second):
        varied.setdefault(name, []).append(value)
    for grid in (False, True):
        for row in sweep_model("zoo:mlp", options, varied, grid=grid).rows:
            changed = options
            for name, value in row.settings:
                changed = RESOURCES[name].put(changed, value)
            if row.outcome is None:
                with pytest.raises(UsageError) as refused:
                    analyze_with("zoo:mlp", changed)
                assert str(refused.value) == row.refusal
                continue
            step = analyze_with("zoo:mlp", changed).step
            got = row.outcome
            assert (got.step.step_s, got.step.comm_share, str(got.verdict)) == (
                step.step_s, step.comm_share, step.verdict,
            )  # fmt: skip
            assert (got.step.step_low_s, got.step.step_high_s) == (step.step_low_s, step.step_high_s)
            assert got.samples_per_s == step.samples_per_s


def test_grid_is_every_combination_in_order() -> None:
    found = sweep_model(
        "zoo:mlp", AnalysisOptions(gpus=16), {"network": [1e9, 2e9], "batch": [8.0, 16.0, 32.0]}, grid=True
    )
    assert [row.settings for row in found.rows] == [
        (("network", rate), ("batch", batch)) for rate in (1e9, 2e9) for batch in (8.0, 16.0, 32.0)
    ]


def test_what_cannot_be_is_a_row_with_the_reason(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "graph.json"
    assert main(["graph", str(VGG19), "--batch", "4", "--format", "json", "--output", str(saved)]) == 0
    found = sweep_model(str(saved), AnalysisOptions(arch="local", gpus=8), {"batch": [4.0, 8.0], "gpus": [4.0, 16.0]})
    assert [row.refusal is None for row in found.rows] == [True, False, True, False]
    text = render_sweep(found, "text")
    assert "batch 8: " in text and "gpus 16: architecture 'local' runs inside one server" in text
    every = json.loads(render_sweep(found, "json"))["rows"]
    assert every[3]["step_s"] is None and "one server" in every[3]["refusal"]


def test_a_batch_given_as_option_is_the_base() -> None:
    options = AnalysisOptions(gpus=8, load=LoadOptions(batch=128))
    found = sweep_model("zoo:mlp", options, {"batch": [128.0, 32.0]})
    assert found.base.batch == 128 and found.rows[0].throughput_speedup == 1.0
    assert found.rows[1].outcome is not None and found.rows[1].outcome.batch == 32
    without = replace(options, load=LoadOptions())
    assert found.rows[1].outcome.step.step_s == analyze_with("zoo:mlp", without).step.step_s


def sweep(capsys: pytest.CaptureFixture[str], form: str) -> str:
    arguments = ["sweep", str(VGG19), "--gpus", "16", "--batch", "8", "--vary", "network=10,100Gb/s"]
    code = main([*arguments, "--vary", "peak=10TFLOP/s", "--format", form, "--quiet"])
    out, err = capsys.readouterr()
    assert code == 0 and err == ""
    return out


def test_formats_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    data: dict[str, Any] = json.loads(sweep(capsys, "json"))
    assert (data["command"], data["schema_version"]) == ("sweep", 1)
    assert [row["settings"] for row in data["rows"]] == [
        {"network": 10 * GBIT}, {"network": 100 * GBIT}, {"peak": 10e12},
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(sweep(capsys, "csv"))))
    assert [float(row["step_s"]) for row in rows[1:]] == [row["step_s"] for row in data["rows"]]
    assert float(rows[0]["step_s"]) == data["base"]["step_s"] and rows[0]["network"] == ""
    for form in ("text", "markdown", "latex"):
        out = sweep(capsys, form)
        assert "10.0 Gb/s" in out and "base: 1.60 Tb/s" in out and "10.0 TFLOP/s" in out
    assert sweep(capsys, "latex").count(r"\toprule") == 2
    assert set(SWEEP_FORMATS) == {"text", "json", "csv", "markdown", "latex"}


@pytest.mark.parametrize("command", ["advise", "sweep"])
def test_help_has_examples_that_run(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    examples = [line.split() for line in out.splitlines() if line.strip().startswith(f"graphcost {command} zoo:")]
    assert "Examples:" in out and examples
    for words in examples:
        small = ["zoo:mlp" if word.startswith("zoo:") else word for word in words[1:]]
        assert main([*small, "--quiet"]) in (0, 1)
        assert "mlp" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "note"),
    [(None, "makes no difference: tcp-cloud sockets have a rate of their own"), ("roce", None)],
)
def test_a_network_that_changes_nothing_says_why(kind: str | None, note: str | None) -> None:
    options = AnalysisOptions(gpus=16, cluster="aws-p3.16xlarge", network_kind=kind, load=LoadOptions(batch=32))
    found = sweep_model(VGG19, options, {"network": (10 * GBIT, 100 * GBIT)})
    assert found.elasticities[0].note == note
    for form in ("text", "markdown", "json"):
        assert ("rate of their own" in render_sweep(found, form)) is (note is not None)


SCHEMA_FILE = Path(__file__).parents[2] / "graphcost" / "report" / "sweep.schema.json"


def numbers_schema(*, refused: bool) -> dict[str, Any]:
    """Of a step; of a row that was refused everything is null."""
    kinds = {
        **dict.fromkeys(("step_s", "step_low_s", "step_high_s"), "number"),
        **dict.fromkeys(("comm_share", "comm_share_low", "comm_share_high"), "number"),
        "verdict": "string", "bound": "string", "fits": "boolean",
    }  # fmt: skip
    made = {name: {"type": [kind, "null"] if refused else kind} for name, kind in kinds.items()}
    return {**made, "samples_per_s": {"type": ["number", "null"]}}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": [*properties]}


def whole_schema() -> dict[str, Any]:
    maybe: dict[str, Any] = {"type": ["number", "null"]}
    text: dict[str, Any] = {"type": ["string", "null"]}
    row = {
        "settings": {"type": "object", "additionalProperties": {"type": "number"}},
        **numbers_schema(refused=True),
        "speedup": maybe, "throughput_speedup": maybe, "refusal": text,
    }  # fmt: skip
    elasticity = {
        "resource": {"enum": list(RESOURCES)},
        "base": maybe,
        "over": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}}]},
        "step": maybe, "throughput": maybe, "note": text,
    }  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "graphcost sweep --format json",
        **closed({
            "schema_version": {"const": SCHEMA_VERSION},
            "graphcost_version": {"type": "string"},
            "command": {"const": "sweep"},
            "model": schema_of(ModelInfo),
            "placement": schema_of(PlacementInfo),
            "grid": {"type": "boolean"},
            "base": closed(numbers_schema(refused=False)),
            "rows": {"type": "array", "items": closed(row)},
            "elasticities": {"type": "array", "items": closed(elasticity)},
        }),
    }  # fmt: skip


def test_the_shipped_schema(update_golden: bool) -> None:
    text = json.dumps(whole_schema(), indent=1) + "\n"
    if update_golden:
        SCHEMA_FILE.write_text(text, "utf-8")
    assert files("graphcost.report").joinpath("sweep.schema.json").read_text("utf-8") == text


@pytest.mark.parametrize(
    "words",
    ["--gpus 8 --vary network=10,100Gb/s", "--gpus 4 --vary gpus=2,4 --vary batch=8,16 --grid",
     "--arch local --gpus 8 --vary gpus=8,16"],
)  # fmt: skip
def test_real_sweeps_obey_the_schema(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "zoo:mlp", *words.split(), "--format", "json", "--quiet"]) in (0, 1)
    data = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text("utf-8"))).validate(data)
    assert any(row["refusal"] for row in data["rows"]) == ("local" in words)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(whole_schema()).validate({**data, "base": {}})
