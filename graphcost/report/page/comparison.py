"""Models under every architecture as one page."""

from __future__ import annotations

from collections.abc import Sequence

from graphcost.comparison import Comparison
from graphcost.report.page.data import step_data
from graphcost.report.page.document import document
from graphcost.report.page.markup import Html, chart, element, joined, table
from graphcost.report.page.words import RESULT_COLUMNS, result_cells
from graphcost.units import format_seconds


def comparison_page(comparisons: Sequence[Comparison]) -> str:
    """One article a model: bars of every placement, fastest first, their table, and what is not possible."""
    title = f"{comparisons[0].name}, compared" if len(comparisons) == 1 else f"{len(comparisons)} models, compared"
    data = {"models": [{"archs": step_data(one.ranked, _labels(one))} for one in comparisons]}
    return document(title, joined((_article(one, number) for number, one in enumerate(comparisons)), "\n"), data)


def _labels(one: Comparison) -> list[str]:
    several = len({r.placement.gpus for r in one.ranked}) > 1
    return [f"{r.placement.arch}, {r.placement.gpus}" if several else r.placement.arch for r in one.ranked]


def _article(one: Comparison, number: int) -> Html:
    place = one.ranked[0].placement
    said = "Step: " + ", ".join(
        f"{label} {format_seconds(r.step.step_s)}" for label, r in zip(_labels(one), one.ranked, strict=True)
    )
    refused = [element("li", f"not possible: {no.arch} on {no.gpus} GPUs: {no.reason}") for no in one.refused]
    rows = table(RESULT_COLUMNS, map(result_cells, one.ranked), caption=f"Placements of {one.name}")
    return element(
        "article",
        element("h2", one.name),
        element("p", f"{place.cluster}, {place.device}, {place.profile} profile", class_="placed"),
        chart("archs", number, "Steps, highest throughput first", said, rows),
        element("ul", joined(refused), class_="notes") if refused else Html(""),
        id=f"m{number}",
    )
