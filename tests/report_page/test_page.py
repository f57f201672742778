"""The HTML page as text: what it says, that it is whole, and that nothing in a name gets out of its place."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from helpers import RESNET50

from benchmarks import page_assets
from graphcost.analysis import analyze
from graphcost.cli.main import main
from graphcost.comparison import analyze_in_detail
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions
from graphcost.report.page import html_report
from graphcost.report.page.document import embedded
from graphcost.report.page.model import VERDICTS
from graphcost.report.timeline import memory_timeline
from graphcost.result import Analysis
from graphcost.units import format_bytes, format_seconds

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<!--\u2028{b}${x}$"
VOID = {"meta", "input", "br", "img", "link"}


def made(source: str = "zoo:resnet50", **options: Any) -> Analysis:
    given: dict[str, Any] = {"gpus": 16, "network_bytes_per_s": 25e9 / 8, "load": LoadOptions(batch=8)}
    return analyze_in_detail(source, AnalysisOptions(**{**given, **options}))


class Page(HTMLParser):
    """Elements, texts and data of a page; every tag that opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.data = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            if self.tags[-1][1].get("type") == "application/json":
                self.data += data
        elif data.strip():
            self.texts.append(data.strip())


def test_a_page_says_what_the_result_says() -> None:
    result = made()
    page = Page(html_report([result]))
    whole = " ".join(page.texts)
    step = result.step
    places = [page.texts.index(one) for one in (VERDICTS[step.verdict], "Where the step goes", "Architectures")]
    assert places == sorted(places)
    for seconds in (step.step_s, step.step_low_s, step.compute_s, step.exposed_comm_s, step.hidden_comm_s):
        assert format_seconds(seconds) in whole
    assert format_bytes(result.training.memory.peak_bytes) in whole
    assert "not possible: local" in whole and "25,557,032" in whole
    charts = {attrs["data-chart"] for _, attrs in page.tags if "data-chart" in attrs}
    assert charts == {"step", "links", "tensors", "roofline", "memory", "archs"}
    assert all(attrs.get("aria-label") for _, attrs in page.tags if "data-chart" in attrs)


def test_what_is_drawn_adds_up() -> None:
    result = made()
    model = json.loads(Page(html_report([result])).data)["models"][0]
    parts = {name: values[0] for name, values in model["step"]["parts"].items()}
    hidden = parts.pop("hidden communication")
    assert sum(parts.values()) == pytest.approx(result.step.step_s, rel=1e-3)
    assert hidden == pytest.approx(result.step.hidden_comm_s, rel=1e-3)
    assert sum(size for _, size in model["tensors"]) == result.training.gradient_bytes == 4 * 25_557_032
    assert sum(model["ops"]["params"]) == result.graph.params + result.graph.buffers  # none is shared here
    flops = sum(value for value in model["ops"]["flops"] if value is not None)
    assert flops == result.graph.matmul_flops + result.graph.elementwise_flops
    bands = model["memory"]["bands"]
    assert max(map(sum, zip(*bands.values(), strict=True))) == result.training.memory.peak_bytes
    points = model["roofline"]["points"]
    peak, rate = max(peak for _, peak in model["roofline"]["roofs"]), model["roofline"]["mem_bytes_per_s"]
    assert all(y <= 1.001 * min(peak, x * rate) for x, y, *_ in points), "an operator is above its roof"
    assert result.predicted is not None
    timed = sum(one.time.time_s for one in result.predicted.ops if one.op.cost is not None and one.op.cost.flops)
    assert sum(point[-1] for point in points) == pytest.approx(timed, rel=2e-3)


@pytest.mark.parametrize(
    "options",
    [{}, {"recompute": True}, {"execution": "compiled"}, {"optimizer": "none"}, {"optimizer_kernels": "foreach"},
     {"profile": "paper"}, {"accumulate": 2, "precision": "amp-fp16"}],
    ids=lambda options: "-".join(map(str, options)) or "plain",
)  # fmt: skip
@pytest.mark.parametrize("source", ["zoo:resnet18", "zoo:bert-base"])
def test_memory_over_the_step_peaks_where_the_plan_says(source: str, options: dict[str, Any]) -> None:
    """The walk that is written down is the one that finds the peak."""
    result = made(source, gpus=2, **options)
    line, held = memory_timeline(result), result.training.memory
    assert line is not None and line.x == tuple(sorted(line.x))
    totals = [sum(values) for values in zip(*line.bands.values(), strict=True)]
    assert max(totals) == held.peak_bytes
    name, begin, end = next(phase for phase in line.phases if phase[0] == held.peak_phase)
    assert begin <= line.x[totals.index(max(totals))] <= end, name


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_memory_where_ranks_divide_it(stage: int) -> None:
    """Divided gradients bound the peak from above, exactly where its moment stays."""
    result = made("zoo:bert-base", gpus=8, arch=f"zero{stage}")
    line, held = memory_timeline(result), result.training.memory
    assert line is not None
    fullest = max(sum(values) for values in zip(*line.bands.values(), strict=True))
    assert 0.9 * held.peak_bytes <= fullest <= held.peak_bytes + 1
    assert stage > 1 or fullest == held.peak_bytes


def test_several_models_have_an_overview() -> None:
    results = [made(), made("zoo:mlp")]
    page = Page(html_report(results))
    links = {attrs["href"] for tag, attrs in page.tags if tag == "a"}
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {"#m0", "#m1"} <= links and {link[1:] for link in links if link} <= ids
    assert f"{sum(one.step.flagged for one in results)} of 2 models flagged." in page.texts


@pytest.mark.parametrize("options", [{"profile": "paper"}, {"gpus": 1}, {"optimizer": "none"}, {"arch": "ps"}])
def test_every_kind_of_result_has_a_page(options: dict[str, Any]) -> None:
    result = made(**options)
    data = json.loads(Page(html_report([result])).data)["models"][0]
    assert (data["roofline"] is None) == ("profile" in options)
    assert (data["tensors"] is None) == (result.placement.gpus == 1 or result.training.optimizer == "none")


def test_a_result_without_details_says_so() -> None:
    page = Page(analyze("zoo:mlp", gpus=2).report("html"))
    assert sum("analyze_in_detail" in text for text in page.texts) == 2


def test_hostile_names_stay_in_their_place() -> None:
    result = made("zoo:mlp")
    ops = tuple(replace(op, name=HOSTILE, module=HOSTILE, op_type=HOSTILE) for op in result.ops)
    assert result.details is not None
    gradients = tuple(replace(g, param=HOSTILE) for g in result.details.gradients)
    inputs = dict.fromkeys([HOSTILE], next(iter(result.model.inputs.values())))
    model = replace(result.model, name=HOSTILE, source=HOSTILE, notes=(HOSTILE,), inputs=inputs)
    bad = replace(result, ops=ops, model=model, details=replace(result.details, gradients=gradients))
    clean, dirty = html_report([result]), html_report([bad])
    tags, expected = ([tag for tag, _ in Page(text).tags] for text in (dirty, clean))
    assert "img" not in tags and tags.count("script") == expected.count("script") == 7
    assert "\u2028" not in dirty.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(Page(dirty).data)["models"][0]["ops"]["name"][0] == HOSTILE
    assert "<img" not in bad._repr_html_() and HOSTILE in " ".join(Page(bad._repr_html_()).texts)


def test_embedded_json_cannot_end_its_element() -> None:
    text = embedded({"a": HOSTILE})
    assert not set("<>&\u2028") & set(text) and json.loads(text) == {"a": HOSTILE}


def test_scripts_run_by_hash_and_nothing_is_fetched() -> None:
    text = html_report([made("zoo:mlp")])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy and policy[1].startswith("default-src 'none'")
    assert "unsafe-inline" not in policy[1].partition("script-src")[2] and policy[1].count("sha256-") == 6
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'\b(?:src|href)="(?!#)', outside)


def test_the_chart_library_is_the_recorded_release() -> None:
    assert page_assets.hash_of_the_tree() == page_assets.RECORD["sha256"]
    first = (page_assets.ASSETS / page_assets.RECORD["file"]).read_text("utf-8")
    assert f'version="{page_assets.RECORD["version"]}"' in first and "Apache License, Version 2.0" in first


def test_a_notebook_gets_a_few_kilobytes() -> None:
    result = analyze("zoo:resnet50", gpus=8, batch=8)
    assert len(result._repr_html_()) < 8_000 and "<script" not in result._repr_html_()


def test_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r.html"
    assert (
        main(["analyze", str(RESNET50), "zoo:mlp", "--gpus", "8", "--batch", "4", "--output", str(out), "--quiet"])
        == 0
    )
    page = Page(out.read_text("utf-8"))
    assert len(json.loads(page.data)["models"]) == 2 and "Memory over" in " ".join(page.texts)
    assert main(["compare", "zoo:mlp", "--gpus", "1,8", "--format", "html", "--quiet"]) == 0
    page = Page(capsys.readouterr().out)
    assert "allreduce, 8" in json.loads(page.data)["models"][0]["archs"]["labels"]
