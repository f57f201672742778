"""Small pieces of HTML. Text goes through ``escape`` here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Cell", "Html", "chart", "element", "joined", "section", "table", "text"]


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A number in a table: what is read, and what it is sorted by."""

    shown: str
    value: float | None


def text(value: str | Html) -> Html:
    """``value`` as markup: escaped unless it is markup already."""
    return value if isinstance(value, Html) else Html(escape(value))


def joined(parts: Iterable[str | Html], between: str = "") -> Html:
    """Pieces one after another."""
    return Html(between.join(text(part) for part in parts))


def element(name: str, *content: str | Html, **attributes: str) -> Html:
    """``<name attributes>content</name>``; ``class_`` is class, other underscores are dashes."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{named}>{joined(content)}</{name}>")


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Html | Cell]], *, caption: str) -> Html:
    """A table that the page makes sortable; columns of ``Cell`` are aligned as numbers."""
    made = [list(row) for row in rows]
    numeric = [any(isinstance(row[index], Cell) for row in made) for index in range(len(columns))]
    head = joined(
        element("th", name, scope="col", class_="n") if number else element("th", name, scope="col")
        for name, number in zip(columns, numeric, strict=True)
    )
    body = joined((element("tr", *map(_cell, row, numeric)) for row in made), "\n")
    inner = element(
        "table", element("caption", caption), element("thead", element("tr", head)), element("tbody", body)
    )
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: str | Html | Cell, numeric: bool) -> Html:
    if isinstance(cell, Cell):
        value = "" if cell.value is None else repr(cell.value)
        return element("td", cell.shown, class_="n", data_v=value)
    return element("td", cell, class_="n") if numeric else element("td", cell)


def chart(kind: str, model: int, title: str, said: str, under: Html, note: str = "") -> Html:
    """A chart that the page's script draws, what it says in words, and the table under it."""
    return element(
        "figure",
        element("figcaption", title),
        element("div", class_="chart", role="img", aria_label=said, data_chart=kind, data_of=str(model)),
        element("p", note, class_="note") if note else Html(""),
        element("details", element("summary", "Figures as a table"), under),
    )


def section(title: str, *content: str | Html, id_: str) -> Html:
    """A part of a page with a heading that links reach."""
    return element("section", element("h3", title), *content, id=id_)
