"""The part of a page that is about communication."""

from __future__ import annotations

from graphcost.report.page.data import MOST_TENSORS
from graphcost.report.page.markup import Cell, Html, chart, element, section, table
from graphcost.report.page.words import seconds_cell
from graphcost.result import Analysis
from graphcost.units import format_bytes, format_seconds, format_share

MOST_ROWS = 50
"""Tensors in the table under the picture."""


def communication_section(r: Analysis, number: int) -> Html:
    """By exchange and link with what is exposed and hidden, then by tensor."""
    if not r.communication:
        return section("Communication", element("p", "Nothing is sent."), id_=f"m{number}-communication")
    rows = [
        (
            m.what, m.link, m.kind, Cell(format_bytes(m.bytes) if m.bytes else "-", m.bytes), seconds_cell(m.time_s),
            seconds_cell(m.exposed_s), m.formula, m.source,
        )
        for m in r.communication
    ]  # fmt: skip
    names = ("what", "link", "kind", "bytes", "time", "exposed", "formula", "constants from")
    said = "Communication by link: " + ", ".join(
        f"{m.what} {format_seconds(m.exposed_s)} exposed" for m in r.communication
    )
    by_link = chart(
        "links", number, "By exchange and link", said, table(names, rows, caption="Communication by link")
    )
    return section("Communication", by_link, _by_tensor(r, number), id_=f"m{number}-communication")


def _by_tensor(r: Analysis, number: int) -> Html:
    gradients = r.details.gradients if r.details is not None and any(m.bytes for m in r.communication) else ()
    if not gradients:
        return Html("")
    sizes = sorted(((g.param, g.sent_bytes) for g in gradients), key=lambda pair: -pair[1])
    total = sum(size for _, size in sizes) or 1
    shown = [
        (name, Cell(format_bytes(size), size), Cell(format_share(size / total), size / total))
        for name, size in sizes[:MOST_ROWS]
    ]
    more = f" (the largest {MOST_ROWS} of {len(sizes):,})" if len(sizes) > MOST_ROWS else ""
    marked = any(g.sparse for g in gradients)
    sparse = " Tables marked sparse count by the rows that a batch touches." if marked else ""
    return chart(
        "tensors", number, f"By tensor: {len(sizes):,} gradients, {format_bytes(total)}",
        f"Gradients by size: {sizes[0][0]} is the largest, {format_bytes(sizes[0][1])}",
        table(("parameter", "gradient", "share"), shown, caption=f"Gradients by size{more}"),
        f"The largest {min(MOST_TENSORS, len(sizes))}. A gradient is what one replica has to send, before the "
        f"exchange multiplies it.{sparse}",
    )  # fmt: skip
