"""The page in a real browser, opened from a file: it draws, sorts, searches, prints, and asks nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import browser
import pytest

from graphcost import units
from graphcost.analysis import analyze
from graphcost.comparison import analyze_in_detail
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions
from graphcost.report.page import html_report
from graphcost.result import Analysis

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(browser.missing()), reason=f"pages are opened with {browser.missing()}"),
]
NAME_OF_FOCUSED = """(() => {
  const at = document.activeElement;
  return (at.textContent || '').trim() || at.getAttribute('aria-label');
})()"""
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser.chromium(), args=browser.ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def results() -> tuple[Analysis, Analysis]:
    def made(source: str, **options: Any) -> Analysis:
        return analyze_in_detail(source, AnalysisOptions(gpus=16, load=LoadOptions(batch=8), **options))

    slow = 25e9 / 8
    return made("zoo:resnet50", network_bytes_per_s=slow), made("zoo:bert-base", arch="ps", precision="amp-fp16")


class Opened:
    """A page from a file, with what it said on the console and what it asked for."""

    def __init__(self, chromium: Browser, text: str, folder: Path, **context: Any) -> None:
        file = folder / "report.html"
        file.write_text(text, "utf-8")
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page: Page = chromium.new_context(**context).new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.route("http*://**", lambda route: route.abort())
        self.url = file.as_uri()
        self.page.goto(self.url)
        self.page.wait_for_selector("html[data-ready=yes]")

    def draw_all(self) -> int:
        """Scroll through, so that every chart is drawn; how many there are."""
        charts = self.page.locator("[data-chart]")
        for index in range(charts.count()):
            charts.nth(index).scroll_into_view_if_needed()
            charts.nth(index).locator("svg").wait_for()
        return charts.count()

    def close(self) -> None:
        """Nothing was complained about, and nothing but the file was asked for."""
        self.page.context.close()
        assert self.complaints == []
        assert [url for url in self.asked if url.partition("#")[0] != self.url] == []


def test_it_draws_sorts_searches_and_changes_theme(
    chromium: Browser, results: tuple[Analysis, Analysis], tmp_path: Path
) -> None:
    opened = Opened(chromium, html_report(results[:1]), tmp_path, color_scheme="light")
    page, ops = opened.page, results[0].ops
    assert opened.draw_all() == 6
    step = page.locator("[data-chart=step]")
    assert "communication" in step.inner_text() and "hidden communication" in step.inner_text()
    table = page.locator("[data-operators] table")
    dearest = max(ops, key=lambda op: op.time_s or 0.0)
    assert table.locator("tbody tr").first.locator("td").nth(1).inner_text() == dearest.name
    table.get_by_role("button", name="parameters").click()
    largest = max(ops, key=lambda op: op.params)
    assert table.locator("tbody tr").first.locator("td").nth(1).inner_text() == largest.name
    assert table.locator("th[aria-sort=descending]").inner_text() == "parameters"
    page.get_by_label("Search operators").fill("layer3 conv compute")
    wanted = [
        o
        for o in ops
        if all(w in f"{o.op_type} {o.name} {o.module} {o.bound}".lower() for w in ("layer3", "compute", "conv"))
    ]
    assert page.get_by_role("status").inner_text().endswith(f"of {len(wanted)}")
    page.get_by_label("Search operators").fill("no such thing")
    assert page.get_by_role("status").inner_text() == "no operator matches"
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(background) == "rgb(20, 23, 27)"
    page.reload()
    assert page.evaluate(background) == "rgb(20, 23, 27)", "the choice is kept"
    opened.close()


def test_the_keyboard_is_enough(chromium: Browser, results: tuple[Analysis, Analysis], tmp_path: Path) -> None:
    """Skip link, search, sorting, folding: reached with Tab, seen, worked with Enter."""
    opened = Opened(chromium, html_report(results[:1]), tmp_path)
    page = opened.page

    def tab_to(says: str) -> None:
        for _ in range(200):
            page.keyboard.press("Tab")
            name = page.evaluate(NAME_OF_FOCUSED)
            if name.startswith(says):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", says
                return
        raise AssertionError(f"Tab never reaches {says!r}")

    tab_to("Skip to the content")
    tab_to("Dark theme")
    tab_to("Figures as a table")
    page.keyboard.press("Enter")
    assert page.locator("figure details[open]").count() == 1
    tab_to("Search operators")
    page.keyboard.type("conv")
    tab_to("bytes")
    page.keyboard.press("Enter")
    assert page.locator("[data-operators] th[aria-sort=descending]").inner_text() == "bytes"
    page.keyboard.press("Enter")
    assert page.locator("[data-operators] th[aria-sort=ascending]").inner_text() == "bytes"
    tab_to("layer1")
    page.keyboard.press("Enter")
    page.locator(".tree details details[open] details").first.wait_for()
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(
    scheme: Any, chromium: Browser, results: tuple[Analysis, Analysis], tmp_path: Path
) -> None:
    opened = Opened(chromium, html_report(results), tmp_path, viewport=PHONE, color_scheme=scheme)
    opened.draw_all()
    opened.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    widths = opened.page.evaluate(
        "[...document.querySelectorAll('.chart svg')].map((one) => one.getBoundingClientRect().right)"
    )
    assert len(widths) == 12 and max(widths) <= PHONE["width"]
    opened.close()


def test_it_prints_whole_and_light(chromium: Browser, results: tuple[Analysis, Analysis], tmp_path: Path) -> None:
    opened = Opened(chromium, html_report(results), tmp_path, color_scheme="dark")
    assert opened.page.locator("[data-chart] svg").count() < 12, "charts far down are not drawn yet"
    opened.page.pdf(path=str(tmp_path / "report.pdf"))
    assert opened.page.locator("[data-chart] svg").count() == 12, "printing drew every one"
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.locator("figure details:not([open])").count() == 0
    opened.page.set_viewport_size({"width": 720, "height": 1000})  # about A4 between its margins
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 720
    assert not opened.page.get_by_role("button", name="theme").is_visible()
    opened.close()


def test_a_hostile_name_is_dead_text(chromium: Browser, tmp_path: Path) -> None:
    result = analyze_in_detail("zoo:mlp", AnalysisOptions(gpus=16, load=LoadOptions(batch=8)))
    bad = "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'>\"\u2028{b}"
    ops = tuple(replace(op, name=bad, op_type=bad, module=bad) for op in result.ops)
    assert result.details is not None and result.predicted is not None
    details = replace(result.details, gradients=tuple(replace(g, param=bad) for g in result.details.gradients))
    timed = tuple(replace(one, op=replace(one.op, name=bad, op_type=bad)) for one in result.predicted.ops)
    predicted, model = replace(result.predicted, ops=timed), replace(result.model, name=bad)
    hostile = replace(result, ops=ops, details=details, model=model, predicted=predicted)
    opened = Opened(chromium, html_report([hostile]), tmp_path)
    opened.draw_all()
    tips = 0
    for chart in ("roofline", "tensors", "step"):  # tooltips are made of names too
        box = opened.page.locator(f"[data-chart={chart}]")
        box.scroll_into_view_if_needed()
        area = box.bounding_box()
        assert area is not None
        for across in range(10, 100, 6):
            for down in range(15, 95, 12):
                x, y = area["x"] + area["width"] * across / 100, area["y"] + area["height"] * down / 100
                opened.page.mouse.move(x, y)
        tips += opened.page.locator(".tip").count()
    assert tips >= 2, "tooltips came up"
    assert opened.page.evaluate("window.hit") is None
    assert opened.page.locator("img").count() == 0 and opened.page.locator("h2").inner_text().startswith("</script>")
    opened.close()


def test_twenty_thousand_operators(chromium: Browser, results: tuple[Analysis, Analysis], tmp_path: Path) -> None:
    """Only the rows shown are in the page; all are sorted and searched."""
    one = results[1]
    many = tuple(replace(op, name=f"{op.name}_{copy}") for copy in range(50) for op in one.ops)
    assert len(many) > 20_000
    opened = Opened(chromium, html_report([replace(one, ops=many)]), tmp_path)
    page = opened.page
    assert page.locator("[data-operators] tbody tr").count() == 25
    page.locator("[data-operators]").get_by_role("button", name="name").click()
    page.get_by_label("Search operators").fill("layernorm_49")
    wanted = sum("layernorm_49" in op.name.lower() for op in many)
    assert wanted and page.get_by_role("status").inner_text().endswith(f"of {wanted}")
    page.get_by_label("Search operators").fill("")
    page.get_by_role("button", name="Next").click()
    assert page.get_by_role("status").inner_text() == f"26 to 50 of {len(many):,}"
    opened.close()


def test_numbers_read_as_everywhere_else(chromium: Browser, tmp_path: Path) -> None:
    """The page's words for numbers are those of ``graphcost.units``."""
    opened = Opened(chromium, html_report([analyze("zoo:mlp")]), tmp_path)
    values = [0, 1, 9.994, 9.996, 12, 999, 999.4, 999.6, 1000, 1234, 9995, 102e6, 3.2e12, 7.77e15, 1.5, 0.5, 1e-3]
    seconds = [0, 1e-9, 9.99e-7, 9.9996e-7, 1e-6, 1.5e-5, 9.996e-4, 1e-3, 0.0123, 0.9996, 1, 59.96, 999.6, 12345.6]
    given = json.dumps({"values": values, "seconds": seconds})
    found = opened.page.evaluate(
        "(text) => { const {values, seconds} = JSON.parse(text); return [values.map(page.count), "
        "values.map(page.bytes), seconds.map(page.seconds), seconds.map(page.share)]; }",
        given,
    )
    assert found[0] == [units.format_count(value) for value in values]
    assert found[1] == [units.format_bytes(value) for value in values]
    assert found[2] == [units.format_seconds(value) for value in seconds]
    assert found[3] == [units.format_share(value) for value in seconds]
    opened.close()
