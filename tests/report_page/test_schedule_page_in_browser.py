"""The page of ``schedule compare``: its curves are the jobs' own times, and a real browser draws them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import browser
import numpy as np
import pytest

from graphcost.report.page.schedule import MOST_POINTS, curves_of, schedule_page
from graphcost.sched import SCHEDULERS
from graphcost.sim.comparing import ScheduleComparison, compare_schedulers
from graphcost.sim.setup import SetupOptions, set_up

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = {"light": 1200, "dark": 390}


@pytest.fixture(scope="module")
def found() -> ScheduleComparison:
    setup = set_up(SetupOptions(count=150, nodes=40))
    traces = [(seed, setup.draw(seed, None)[0]) for seed in (0, 1)]
    chosen = [SCHEDULERS.find(name) for name in ("drf", "srtf", "fifo")]
    return compare_schedulers(chosen, traces, setup.cluster, setup.speeds, setup.settings)


def test_curves_are_the_shares_of_jobs_that_took_no_longer(found: ScheduleComparison) -> None:
    drawn = curves_of(found)
    assert [one["name"] for one in drawn["curves"]] == ["drf", "srtf", "fifo", "bound"]
    for curve in drawn["curves"]:
        times = np.array(found.completion_s[curve["name"]])
        assert len(times) == 300 and len(curve["points"]) == 1 + MOST_POINTS
        assert curve["points"][0][1] == 0 and curve["points"][-1][1] == 1
        for seconds, share in curve["points"][1:]:
            assert (times <= seconds * 1.0001).mean() >= share >= (times < seconds * 0.9999).mean()
        assert drawn["low"] <= times.min() and times.max() <= drawn["high"]
    assert (np.log10([drawn["low"], drawn["high"]]) % 1 == 0).all()


def test_few_jobs_are_drawn_one_by_one(found: ScheduleComparison) -> None:
    few = ScheduleComparison(
        found.seeds, found.confidence, found.resamples, found.rows, found.bound, found.differences,
        {"drf": (30.0, 10.0, 20.0, 20.0), "fifo": ()},
    )  # fmt: skip
    (curve,) = curves_of(few)["curves"]  # a scheduler under which no job finished has none
    assert curve["points"] == [[10, 0], [10, 0.25], [20, 0.5], [20, 0.75], [30, 1]]
    assert "drf 20.0 s" in schedule_page(few, "few", [])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser.chromium(), args=browser.ARGUMENTS)
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.skipif(bool(browser.missing()), reason=f"pages are opened with {browser.missing()}")
@pytest.mark.parametrize("scheme", WIDTHS)
def test_it_opens_and_draws(chromium: Browser, found: ScheduleComparison, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "report.html"
    hostile = "</script><img src=x onerror='window.hit=1'>"
    page_text = schedule_page(found, f"two traces {hostile}", ["40 nodes"])
    file.write_text(page_text, "utf-8")
    complaints: list[str] = []
    asked: list[str] = []
    context = chromium.new_context(color_scheme=scheme, viewport={"width": WIDTHS[scheme], "height": 800})  # type: ignore[arg-type]
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    holder = page.locator("[data-chart]")
    assert holder.count() == 1
    holder.scroll_into_view_if_needed()
    holder.locator("svg").wait_for()
    words = holder.inner_text()
    assert all(name in words for name in ("drf", "srtf", "fifo", "bound", "completion time of a job", "100 %"))
    width = holder.locator("svg").evaluate("(one) => one.getBoundingClientRect().width")
    curves = holder.locator("svg").evaluate(
        """(svg) => [...svg.querySelectorAll('path')].filter((one) => one.getAttribute('fill') === 'none'
             && one.getAttribute('stroke-width') === '2').map((one) => one.getBBox().width)"""
    )
    long = [one for one in curves if one > 0.15 * width]
    assert len(long) == 4, curves  # a line a scheduler; what is shorter belongs to the names above
    area = holder.bounding_box()
    assert area is not None
    for across in range(20, 95, 2):
        for down in range(20, 90, 4):
            page.mouse.move(area["x"] + area["width"] * across / 100, area["y"] + area["height"] * down / 100)
            if page.locator(".tip").count():
                break
        if page.locator(".tip").count():
            break
    assert "of the jobs" in page.locator(".tip").inner_text() and "within" in page.locator(".tip").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the page"
    assert page.evaluate("window.hit") is None
    page.screenshot(path=str(tmp_path / f"{scheme}.png"), full_page=True)
    context.close()
    assert complaints == [] and set(asked) == {file.as_uri()}
