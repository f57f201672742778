"""A result inside a notebook: verdict, parts of the step, heaviest operators. No script, a few kilobytes."""

from __future__ import annotations

from graphcost.report.page.markup import Html, element, joined
from graphcost.report.page.words import headline, memory_words, operator_cells, part_rows, phases_words, placed
from graphcost.result import Analysis

_STYLE = """
.graphcost{font:14px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem}
.graphcost table{border-collapse:collapse;margin:.5rem 0}
.graphcost td,.graphcost th{padding:.15rem .7rem;text-align:left}
.graphcost td.n,.graphcost th.n{text-align:right;font-variant-numeric:tabular-nums}
.graphcost tr:nth-child(even){background:#8881}.graphcost .bar{height:.7rem;background:#3b7dd8;min-width:1px}
.graphcost .flagged{color:#b00020}.graphcost .clear{color:#1b7f3b}.graphcost .too-close{color:#9a6700}
"""


def fragment(r: Analysis, *, top: int = 10) -> str:
    """``r`` as a piece of HTML for a page that is there already."""
    parts = joined(
        element(
            "tr",
            element("td", name),
            element("td", seconds.shown, class_="n"),
            element("td", share.shown, class_="n"),
            element("td", element("div", class_="bar", style=f"width:{12 * (share.value or 0):.2f}rem")),
            element("td", note),
        )
        for name, seconds, share, note in part_rows(r)
    )
    ranked = sorted((op for op in r.ops if op.counted), key=lambda op: -(op.time_s or 0.0))[:top]
    names = ("operator", "name", "time", "FLOP", "bytes", "bound")
    head = joined(
        element("th", name) if index in (0, 1, 5) else element("th", name, class_="n")
        for index, name in enumerate(names)
    )
    rows = joined(
        element(
            "tr",
            *(
                element("td", cell) if isinstance(cell, str) else element("td", cell.shown, class_="n")
                for cell in operator_cells(op)
            ),
        )
        for op in ranked
    )
    phases = phases_words(r)
    return element(
        "div",
        Html(f"<style>{_STYLE}</style>"),
        element("h2", r.model.name),
        element("p", placed(r)),
        element("p", element("strong", r.step.verdict), f": {headline(r)}", class_=r.step.verdict),
        element("p", r.step.reason),
        element("table", parts),
        element("p", phases) if phases else Html(""),
        element("p", memory_words(r)),
        element("table", element("tr", head), rows),
        class_="graphcost",
    )
