"""Results of the fleet commands as one page: every figure with its table, and what the table is said first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from graphcost.fleet.result import Projection, Sweep, Target
from graphcost.report.fleet_figures import BOUNDS, Bars, Figure, Group, Result, figures_of, words
from graphcost.report.page.document import document
from graphcost.report.page.markup import Cell, Html, chart, element, joined, section, table
from graphcost.units import format_count

_TITLES = {
    "fleet characterize": "Where the time of the jobs goes",
    "fleet project": "PS/Worker jobs on other architectures",
    "fleet sweep": "The jobs on faster hardware",
    "fleet sweep --sensitivity": "The conclusion under other assumptions",
}
_FOOTER = "Computed from a table of jobs; nothing was run."


def fleet_page(found: Result, head: Sequence[str], texts: Sequence[str]) -> str:
    """``head``: what the jobs are taken to run on; ``texts``: findings in sentences."""
    mark = mark_word(found)
    title = " ".join(part for part in (_TITLES[found.command], f"({mark})" if mark else "") if part)
    numbers = count()
    data: list[Any] = []
    parts = [_banner(found), element("h2", title), _notes(head), _notes(texts)]
    parts += [_group(group, index, numbers, data, mark) for index, group in enumerate(figures_of(found))]
    if isinstance(found, Sweep):
        parts.append(_combinations(found))
    targets = getattr(found, "targets", ())
    if targets and not isinstance(found, Projection):
        parts.append(_targets(targets))
    return document(title, joined(parts, "\n"), {"models": data}, scripts=("fleet.js",), footer=_FOOTER)


def mark_word(found: Result) -> str:
    """What every figure says of the table: ``synthetic``, ``example``, or nothing."""
    return "synthetic" if found.table.synthetic else "example" if found.table.example else ""


def _banner(found: Result) -> Html:
    mark = found.table.mark
    if mark is None:
        return Html("")
    name, comma, rest = mark.partition(",")
    said = element("p", element("strong", name), f"{comma}{rest}", class_="headline")
    return element("div", said, class_="verdict too-close", role="note")


def _notes(lines: Sequence[str]) -> Html:
    return element("ul", joined(element("li", line.strip()) for line in lines), class_="notes") if lines else Html("")


def _group(group: Group, index: int, numbers: Any, data: list[Any], mark: str) -> Html:
    pictures = []
    for figure in group.figures:
        data.append(_data(figure))
        title = f"{figure.title} ({mark})" if mark else figure.title
        kind = "bars" if isinstance(figure, Bars) else "curves"
        pictures.append(chart(kind, next(numbers), title, f"{group.title}: {title}", _table(figure)))
    if not pictures:
        return Html("")
    note = element("p", group.note, class_="note") if group.note else Html("")
    several = len(pictures) > 1
    figures = element("div", joined(pictures), class_="figures") if several else joined(pictures)
    return section(group.title, note, figures, id_=f"g{index}")


def _data(figure: Figure) -> dict[str, Any]:
    if isinstance(figure, Bars):
        series = [
            {"name": one.name, "ink": [one.ink.light, one.ink.dark, one.ink.hatch], "values": _rounded(one.values)}
            for one in figure.series
        ]
        return {"labels": figure.labels, "series": series}
    curves = [{"name": one.name, "points": [_rounded(point) for point in one.points]} for one in figure.curves]
    return {"across": figure.across, "up": figure.up, "x": figure.x, "y": figure.y, "curves": curves}


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _table(figure: Figure) -> Html:
    if isinstance(figure, Bars):
        columns = [one.values for one in figure.series]
        return _side_by_side("", figure.labels, [one.name for one in figure.series], columns, "share", figure.title)
    names = [curve.name for curve in figure.curves]
    xs, ys = ([tuple(point[axis] for point in curve.points) for curve in figure.curves] for axis in (0, 1))
    if len(set(ys)) == 1:  # quantiles: a row for each level
        return _side_by_side(figure.up, ys[0], names, xs, figure.x, f"{figure.across}, by {figure.up}", figure.y)
    return _side_by_side(figure.across, xs[0], names, ys, figure.y, figure.title, figure.x)


def _side_by_side(
    head: str,
    keys: Sequence[Any],
    names: Sequence[str],
    columns: Sequence[Sequence[float]],
    kind: str,
    caption: str,
    key_kind: str = "",
) -> Html:
    """A row a key, a column a name."""
    rows: list[list[str | Html | Cell]] = [
        [Cell(words(key_kind, key), key) if key_kind else str(key),
         *(Cell(words(kind, column[at]), column[at]) if at < len(column) else "" for column in columns)]
        for at, key in enumerate(keys)
    ]  # fmt: skip
    return table((head, *names), rows, caption=caption)


def _combinations(found: Sweep) -> Html:
    titles = list(found.combined[0].by_job)
    rates = ("network_bytes_per_s", "pcie_bytes_per_s", "peak_flops_per_s", "mem_bytes_per_s")
    rows: list[list[Cell]] = [
        [*(Cell(_rate(name, getattr(point, name)), getattr(point, name)) for name in rates),
         *(Cell(f"{point.by_job[title]:.3f}x", point.by_job[title]) for title in titles)]
        for point in sorted(found.combined, key=lambda one: -one.by_job["all"])
    ]  # fmt: skip
    columns = ("Ethernet", "PCIe", "GPU peak", "GPU memory", *titles)
    return section(
        "All combinations",
        element("p", "Mean speed-up, each job counts once; the fastest first.", class_="note"),
        element("figure", table(columns, rows, caption="All combinations of the candidates")),
        id_="combinations",
    )


def _rate(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name == "network_bytes_per_s":
        return f"{format_count(value * 8)}b/s"
    return f"{format_count(value)}{'FLOP/s' if name == 'peak_flops_per_s' else 'B/s'}"


def _targets(targets: Sequence[Target]) -> Html:
    rows = [
        [one.what, one.use, _figure(one.value, BOUNDS[one.relation]), _figure(one.got), "yes" if one.met else "NO",
         one.tag]
        for one in targets
    ]  # fmt: skip
    return section(
        "Published figures against this run",
        element("p", "Fitted: the population was made to agree, which proves nothing. Held out: the fit has not "
                "seen them.", class_="note"),
        table(("figure", "use", "published", "here", "met", "what the figure is worth"), rows, caption="Targets"),
        id_="targets",
    )  # fmt: skip


def _figure(value: float | str, bound: str = "") -> str | Cell:
    return value if isinstance(value, str) else Cell(f"{bound}{value:.3g}", value)
