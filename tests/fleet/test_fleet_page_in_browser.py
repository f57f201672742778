"""Pages of the fleet commands in a real browser: every figure drawn, nothing complained, nobody asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import browser
import pytest
from test_fleet_figures import COMMANDS, run

from graphcost.cli.main import main
from graphcost.report.fleet import render_fleet
from graphcost.report.fleet_figures import Bars, figures_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(browser.missing()), reason=f"pages are opened with {browser.missing()}"),
]
WIDTHS = {"light": 1200, "dark": 390}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser.chromium(), args=browser.ARGUMENTS)
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_it_opens_and_draws(chromium: Browser, tmp_path: Path, name: str, scheme: str) -> None:
    jobs = str(tmp_path / "jobs.parquet")
    assert main(["fleet", "generate", "--seed", "3", "--count", "2000", "--output", jobs, "--quiet"]) == 0
    found = run(name, jobs)
    file = tmp_path / "report.html"
    file.write_text(render_fleet(found, "html"), "utf-8")
    complaints: list[str] = []
    asked: list[str] = []
    context = chromium.new_context(color_scheme=scheme, viewport={"width": WIDTHS[scheme], "height": 800})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    charts = page.locator("[data-chart]")
    figures = [figure for group in figures_of(found) for figure in group.figures]
    assert charts.count() == len(figures)
    for index, figure in enumerate(figures):
        charts.nth(index).scroll_into_view_if_needed()
        charts.nth(index).locator("svg").wait_for()
        series = figure.series if isinstance(figure, Bars) else figure.curves
        drawn = charts.nth(index).inner_text()
        assert all(one.name in drawn for one in series), (figure.title, drawn)
    assert page.get_by_role("note").inner_text().startswith("SYNTHETIC population, drawn")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the page"
    context.close()
    assert complaints == [] and set(asked) == {file.as_uri()}
