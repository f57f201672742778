"""Advice as its users meet it: it holds when they follow it, it never slows a job, and it can be nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers import LIGHT, RESNET50, VGG19
from one_product import MEM, NVLINK, UTILISATION, one_product, paper, rest_s, ring_bytes
from test_schema import schema_of

from graphcost.advising import Advising, advise_model
from graphcost.advising.changes import KINDS, Effort
from graphcost.cli.main import main
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions
from graphcost.recipe import Precision
from graphcost.report.advice import render_advice
from graphcost.result import SCHEMA_VERSION
from graphcost.what_if import WhatIf

SCHEMA_FILE = Path(__file__).parents[2] / "graphcost" / "report" / "advice.schema.json"
ALEXNET = LIGHT / "light_bvlc_alexnet.onnx"

CASES = {
    "vgg19-cloud": (VGG19, "--gpus 16 --batch 32 --cluster aws-p3.16xlarge"),
    "vgg19-roce": (VGG19, "--gpus 16 --batch 16 --cluster horovod-p100-25roce"),
    "alexnet-ps": (ALEXNET, "--arch ps --gpus 16 --ps 1 --batch 32 --cluster horovod-p100-40gbe"),
    "alexnet-no-overlap": (ALEXNET, "--gpus 8 --batch 64 --cluster dgx1-v100 --overlap none --max-comm-share 20%"),
    "alexnet-paper": (ALEXNET, "--gpus 16 --batch 64 --cluster pai-paper-base --profile paper"),
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--format", "json", "--quiet")
    assert code in (0, 1), err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("name", CASES)
def test_advice_holds_when_followed(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The options that are printed, given to ``analyze``, give the numbers that were promised."""
    source, given = CASES[name]
    found = answer(capsys, "advise", source, *given.split())
    told = [*found["advice"], *found["rejected"]]
    assert found["verdict"] != "clear" and told
    for one in told:
        if "without" in one["options"]:
            continue
        followed = answer(capsys, "analyze", source, *given.split(), *one["options"].split())
        step, place, promised = followed["step"], followed["placement"], one["outcome"]
        for key in ("step_s", "step_low_s", "step_high_s", "comm_share", "comm_share_high", "verdict", "bound"):
            assert promised[key] == step[key], (one["options"], key)
        assert promised["samples_per_s"] == pytest.approx(step["samples_per_s"])
        assert promised["global_batch"] == place["global_batch"] and promised["gpus"] == place["gpus"]
        memory = followed["training"]["memory"]
        assert (promised["peak_bytes"], promised["fits"]) == (memory["peak_bytes"], memory["fits"])
        if one["recommended"]:
            assert step["verdict"] == "clear" and memory["fits"]


@pytest.mark.parametrize("name", CASES)
def test_laws_of_advice(capsys: pytest.CaptureFixture[str], name: str) -> None:
    source, given = CASES[name]
    found = answer(capsys, "advise", source, *given.split())
    efforts = [Effort[one["effort"].upper()] for one in found["advice"]]
    assert efforts == sorted(efforts)
    for one in found["advice"]:
        assert one["recommended"] and not one["objections"]
        assert one["throughput_speedup"] >= 1 - 1e-9 and one["outcome"]["fits"]  # every base here fits
        assert one["outcome"]["comm_share_high"] <= found["max_comm_share"]
    for one in found["rejected"]:
        assert one["objections"] and not one["recommended"]
    for one in (*found["advice"], *found["rejected"]):
        changed = one["outcome"]["global_batch"] != found["base"]["global_batch"]
        assert changed == ("global batch" in (one["caution"] or ""))
    kinds = [tuple(one["kinds"]) for one in (*found["advice"], *found["rejected"])]
    assert len(kinds) == len(set(kinds))
    assert found["nearest_miss"] is None or not found["advice"]


def test_a_faster_format_is_never_undone() -> None:
    """fp32 in place of AMP would lower the share by wasting time; so would any slower format."""
    what_if = WhatIf(str(VGG19), AnalysisOptions(gpus=16, precision="amp-fp16", load=LoadOptions(32)))
    proposed = [change for kind in KINDS for change in kind(what_if.base) if change.kind == "precision"]
    assert {change.apply(what_if.base.options).precision for change in proposed} == {"amp-bf16", "bf16"}
    assert not {change.apply(what_if.base.options).precision for change in proposed} & {"fp32", "tf32"}
    last = WhatIf("zoo:mlp", AnalysisOptions(gpus=8, precision=Precision.BF16.value))
    assert not [change for kind in KINDS for change in kind(last.base) if change.kind == "precision"]


def test_slower_changes_are_rejected_with_both_rates(capsys: pytest.CaptureFixture[str]) -> None:
    source, given = CASES["vgg19-roce"]
    found = answer(capsys, "advise", source, *given.split())
    fewer = next(one for one in found["rejected"] if one["kinds"] == ["fewer-gpus"])
    assert fewer["outcome"]["verdict"] == "clear" and fewer["throughput_speedup"] < 1
    assert fewer["objections"][0].startswith("slower: ") and "instead of" in fewer["objections"][0]


def test_a_batch_that_does_not_fit_names_both_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    source, given = CASES["vgg19-cloud"]
    found = answer(capsys, "advise", source, *given.split())
    batch = next(one for one in found["rejected"] if one["kinds"] == ["batch"])
    (objection,) = batch["objections"]
    needed = r"does not fit: the step needs [\d.]+ GB beside 524 MB of context, v100-sxm2-16 has 16\.0 GB"
    assert re.fullmatch(needed, objection)
    assert any("recompute" in one["kinds"] for one in (*found["advice"], *found["rejected"]))


def test_a_base_that_does_not_fit_is_advised_about_communication_and_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """85 GB on 80: half the bytes on the wire is advice all the same; a larger batch, which needs more, is not."""
    found = answer(capsys, "advise", "zoo:gpt2", "--gpus", "64", "--cluster", "dgx-h100", "--network", "10Gb/s")
    assert not found["base"]["fits"] and found["advice"]
    for one in found["advice"]:
        assert one["outcome"]["fits"] or "it still does not fit" in one["caution"]
        assert one["outcome"]["peak_bytes"] <= found["base"]["peak_bytes"]
    batch = next(one for one in found["rejected"] if one["kinds"] == ["batch"])
    assert any(text.startswith("does not fit: ") for text in batch["objections"])


def test_an_architecture_of_one_server_is_tried_on_one(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(
        capsys, "advise", "zoo:wide-deep-criteo", "--arch", "ps", "--gpus", "16", "--batch", "512",
        "--cluster", "pai-paper-base", "--profile", "paper",
    )  # fmt: skip
    one = next(one for one in (*found["advice"], *found["rejected"]) if one["kinds"] == ["arch", "gpus"])
    assert one["options"] == "--arch pearl --gpus 8" and one["outcome"]["servers"] == 1


def test_nothing_helps(tmp_path: Path) -> None:
    """No limit of 0.1 % can be held by several GPUs: losses alone are more, and one GPU is slower."""
    source = str(one_product(tmp_path / "m.onnx"))
    found = advise_model(
        source, AnalysisOptions(gpus=16, load=LoadOptions(4096), max_comm_share=0.001, cluster="dgx-a100")
    )
    assert found.advice == () and found.verdict != "clear"
    assert found.nearest_miss is not None and not found.nearest_miss.recommended
    text = render_advice(found, "text")
    assert "nothing helps" in text and "nearest miss" in text
    assert "Nothing helps" in render_advice(found, "markdown")


def test_pairs_are_tried_where_no_single_change_is_enough(tmp_path: Path) -> None:
    """16 GPUs, 400 Gb/s, a half: 449 us on NVLink and 449 us on the network, beside 352 us of the rest.

    One of the two without limit, or half the bytes, leaves 449 us and is not enough; half the bytes over four
    times the network are 225 + 56 us. One GPU is clear and slower. The batch is fixed.
    """
    source = tmp_path / "fixed.json"
    model = one_product(tmp_path / "m.onnx")
    assert main(["graph", str(model), "--batch", "64", "--format", "json", "--output", str(source)]) == 0
    options = replace(paper(limit=0.5), network_bytes_per_s=400e9 / 8, load=LoadOptions())
    found = advise_model(str(source), options)
    assert found.verdict == "flagged" and round(found.base.comm_share, 3) == 0.718
    assert found.advice and all(len(one.kinds) == 2 for one in found.advice)
    best = next(one for one in found.advice if set(one.kinds) == {"half-gradients", "network"})
    assert best.options == "--half-gradients --network 1.60Tb/s"
    casts_s = 2 * (4 + 4) * 1024 * 1024 / (UTILISATION * MEM)
    sent_s = ring_bytes(16) / 2 / UTILISATION * (1 / NVLINK + 1 / 200e9)
    assert best.outcome.comm_share == pytest.approx(sent_s / (sent_s + casts_s + rest_s(64)))


def test_a_clear_model_has_margins(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "advise", RESNET50, "--gpus", "8", "--batch", "32")
    assert code == 0 and "nothing to change" in out and "margins" in out
    assert re.search(r"^nvlink +300 GB/s +to [\d.]+ GB/s +to [\d.]+ GB/s", out, re.MULTILINE)


def test_one_gpu_communicates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "advise", "zoo:mlp")
    assert found["verdict"] == "clear" and found["notes"] == ["one GPU: nothing is communicated"]
    assert found["advice"] == []
    code, out, _ = run(capsys, "advise", "zoo:mlp")
    assert code == 0 and "nothing to change; one GPU: nothing is communicated" in out


def test_inference_has_no_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "advise", "zoo:mlp", "--gpus", "8", "--optimizer", "none")
    assert found["verdict"] == "clear" and found["notes"] == ["forward only: no gradients are communicated"]


def test_a_model_that_cannot_be_rebatched_says_so_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = tmp_path / "graph.json"
    assert main(["graph", str(VGG19), "--batch", "32", "--format", "json", "--output", str(saved)]) == 0
    found = answer(capsys, "advise", saved, "--gpus", "16", "--cluster", "aws-p3.16xlarge")
    assert [one["reason"] for one in found["refused"] if one["what"] == "samples per GPU"] == [
        f"{saved} has no open input 'batch'; leave that option out"
    ]
    assert [one["kinds"] for one in found["advice"]] == [["accumulate"], ["fewer-gpus"]]
    assert not [one for one in found["break_evens"] if one["resource"] == "batch"]


def test_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flagged = ["advise", VGG19, *CASES["vgg19-cloud"][1].split()]
    assert run(capsys, *flagged)[0] == 1
    assert run(capsys, *flagged, "--exit-zero")[0] == 0
    assert run(capsys, "advise", tmp_path / "none.onnx")[0] == 3
    assert run(capsys, "advise", "zoo:mlp", "--device", "h100-smx")[0] == 2
    code, _, err = run(capsys, "advise", LIGHT)
    assert code == 2 and "name one of them" in err
    code, _, err = run(capsys, "advise", "zoo:mlp", "--output", str(tmp_path / "advice.docx"))
    assert code == 2 and "known: .txt, .json, .md" in err


def test_outputs_by_suffix(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, data, table = tmp_path / "a.txt", tmp_path / "a.json", tmp_path / "a.md"
    code, out, _ = run(
        capsys, "advise", ALEXNET, *CASES["alexnet-paper"][1].split(),
        "--output", text, "--output", data, "--output", table,
    )  # fmt: skip
    assert code == 1 and out == ""
    assert "break-even values" in text.read_text("utf-8")
    assert json.loads(data.read_text("utf-8"))["command"] == "advise"
    assert table.read_text("utf-8").startswith("### light_bvlc_alexnet: flagged")


def whole_schema() -> dict[str, Any]:
    one = schema_of(Advising)
    one["properties"] = {"schema_version": {"const": SCHEMA_VERSION}, **one["properties"]}
    one["required"] = ["schema_version", *one["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "graphcost advise --format json",
        **one,
    }


def test_the_shipped_schema_is_that_of_the_types(update_golden: bool) -> None:
    text = json.dumps(whole_schema(), indent=1) + "\n"
    if update_golden:
        SCHEMA_FILE.write_text(text, "utf-8")
    assert files("graphcost.report").joinpath("advice.schema.json").read_text("utf-8") == text


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return found


@pytest.mark.parametrize(
    "arguments",
    [("zoo:mlp",), ("zoo:mlp", "--gpus", "8"), (VGG19, *CASES["vgg19-cloud"][1].split())],
    ids=["one", "clear", "flagged"],
)
def test_real_output_obeys_the_schema(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    document = answer(capsys, "advise", *arguments)
    jsonschema.validate(document, schema())
    document["base"]["step_ms"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())
