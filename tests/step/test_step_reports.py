"""What every report says of a step: its parts, phases, data, and communication exposed and hidden."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from graphcost.analysis import analyze
from graphcost.engine.input import InputPipeline
from graphcost.result import Analysis
from graphcost.units import format_seconds

PIPELINE = InputPipeline(110e3, 1e9, 100.0)


def made(**options: Any) -> Analysis:
    given: dict[str, Any] = {"gpus": 16, "batch": 8, "cluster": "aws-p3.16xlarge", "pipeline": PIPELINE}
    return analyze("zoo:resnet50", **{**given, **options})


def said(result: Analysis) -> dict[str, str]:
    """The figures of a step as the reports print them."""
    step, stages = result.step, result.step.input_stages
    assert stages is not None and stages.read_s and stages.decode_s
    figures = {
        "compute": step.compute_s, "memory": step.memory_s, "host": step.host_s, "input": step.input_s,
        "exposed": step.exposed_comm_s, "hidden": step.hidden_comm_s, "read": stages.read_s,
        "decode": stages.decode_s, "copy": stages.copy_s, "forward": step.forward_s or 0.0,
        "backward": step.backward_s or 0.0, "update": step.update_s or 0.0, "step": step.step_s,
    }  # fmt: skip
    return {name: format_seconds(seconds) for name, seconds in figures.items()}


class _Cells(HTMLParser):
    """Text of a page, and that every tag that opens is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_text() -> None:
    result = made()
    text, figures = " ".join(result.report("text").split()), said(result)
    for name in ("compute", "memory", "host", "input"):
        assert re.search(rf"{name} {re.escape(figures[name])} ", text), name
    assert f"read {figures['read']}, decode {figures['decode']}, copy {figures['copy']}" in text
    assert f"exposed, {figures['hidden']} hidden" in text and f"communication {figures['exposed']}" in text
    phases = f"forward {figures['forward']}, backward {figures['backward']}, update {figures['update']}"
    assert f"of which {phases}" in text


def test_markdown() -> None:
    """The parts of every model in one row, in the order of its head."""
    results = made(), made(pipeline=InputPipeline(), profile="paper", overlap="none")
    lines = results[0].report("markdown").splitlines()
    head = next(index for index, line in enumerate(lines) if "| hidden |" in line)
    names = [cell.strip() for cell in lines[head].strip("|").split("|")]
    cells = dict(zip(names, (cell.strip() for cell in lines[head + 2].strip("|").split("|")), strict=True))
    figures = said(results[0])
    assert cells.pop("model") == "resnet50" and cells.pop("communication") == figures["exposed"]
    assert cells == {name: figures[name] for name in cells} and len(cells) == 8
    paper = results[1].report("markdown").splitlines()
    assert paper[-1].endswith("| - | - | - |")  # the study's framework has no phases


def test_fragment() -> None:
    result = made()
    page = _Cells()
    page.feed(result._repr_html_())
    assert page.open == []
    figures = said(result)
    for name in ("compute", "memory", "host", "input"):
        assert page.texts[page.texts.index(name) + 1] == figures[name], name
    assert page.texts[page.texts.index("communication") + 1] == figures["exposed"]
    whole = " ".join(page.texts)
    assert f"exposed, {figures['hidden']} hidden" in whole and f"decode {figures['decode']}" in whole
    assert f"of which forward {figures['forward']}, backward {figures['backward']}" in whole
    assert "activations" in whole and "the peak is in the backward pass" in whole


def test_html_of_the_paper_profile_has_no_phases() -> None:
    assert "of which" not in made(profile="paper", pipeline=InputPipeline()).report("html")


def test_json_carries_the_same() -> None:
    result = made()
    step = json.loads(result.to_json())["step"]
    parts = [step[name] for name in ("input_s", "compute_s", "memory_s", "host_s", "exposed_comm_s")]
    assert step["step_s"] == pytest.approx(sum(parts))
    assert step["hidden_comm_s"] == pytest.approx(step["comm_s"] - step["exposed_comm_s"])
    phases = [step[name] for name in ("forward_s", "backward_s", "update_s")]
    assert sum(phases) == pytest.approx(step["compute_s"] + step["memory_s"] + step["host_s"])
    assert step["input_stages"]["prefetched"] is True
    assert "predicted" not in result.to_json()
