"""Results as one self-contained HTML page: charts, sortable tables, no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcost.report.page.data import model_data
from graphcost.report.page.document import document
from graphcost.report.page.fragment import fragment
from graphcost.report.page.markup import Html, element, joined, section, table
from graphcost.report.page.model import model_section
from graphcost.report.page.words import RESULT_COLUMNS, result_cells
from graphcost.result import Analysis

__all__ = ["fragment", "html_report"]

_PARTS = ("step", "communication", "roofline", "memory", "architectures", "operators", "modules", "graph")


def html_report(results: Sequence[Analysis], *, top: int = 10, before: Html | None = None, **_: Any) -> str:
    """One page: of several models an overview first, then each; ``before`` them all what a check says."""
    title = results[0].model.name if len(results) == 1 else f"{len(results)} models"
    several = len(results) > 1
    parts = [_overview(results)] if several else [_contents(0)]
    parts = [before, *parts] if before is not None else parts
    for number, result in enumerate(results):
        parts.append(model_section(result, number, top=top))
    return document(title, joined(parts, "\n"), {"models": [model_data(result) for result in results]})


def _contents(number: int) -> Html:
    links = (element("a", name, href=f"#m{number}-{name}") for name in _PARTS)
    return element("nav", joined(links, " "), aria_label="Parts of this page")


def _overview(results: Sequence[Analysis]) -> Html:
    rows = [
        (element("a", result.model.name, href=f"#m{number}"), *result_cells(result))
        for number, result in enumerate(results)
    ]
    flagged = sum(result.step.flagged for result in results)
    return section(
        "Overview",
        element("p", f"{flagged} of {len(results)} models flagged."),
        table(("model", *RESULT_COLUMNS), rows, caption="All models"),
        id_="overview",
    )
