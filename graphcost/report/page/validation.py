"""Predicted against measured step times as one page: scores of every table, every row as a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphcost.report.page.document import document
from graphcost.report.page.markup import Cell, Html, chart, element, joined, section, table
from graphcost.units import format_share
from graphcost.validation import Scores

if TYPE_CHECKING:
    import pandas as pd

    from graphcost.validation import Validation

BAND = 0.2
"""The band beside the line where both are equal."""


def _percent(value: float | None) -> str:
    return "" if value is None else format_share(value)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("table", "table", str),
    ("rows", "rows", "{:,}".format),
    ("predicted", "predicted", "{:,}".format),
    ("median", "median_error", _percent),
    ("mean", "mean_error", _percent),
    ("p90", "p90_error", _percent),
    ("bias", "bias", _signed),
    ("rank", "rank_correlation", _three),
    ("scaling", "scaling_error_points", _points),
    ("share", "comm_share_error_points", _points),
    ("winner", "winner_accuracy", _percent),
    ("verdict", "verdict_accuracy", _percent),
    ("interval", "interval_coverage", _percent),
)
"""(head, figure of ``Scores``, in words), for every format that is read by people."""

EXPLAINED = (
    "Errors of step times: medians of (model, GPU, precision, GPUs, architecture), averaged by model. Scaling: "
    "T(1)/T(n); share: exposed communication; both in points."
)


def validation_page(found: Validation, broken: Sequence[str]) -> str:
    """The page of ``found``; ``broken``: what is out of tolerance, in sentences."""
    frame = found.frame[found.frame.predicted_s.notna()]
    inside = int(((frame.predicted_s / frame.step_s - 1).abs() <= BAND).sum())
    verdict = element(
        "div",
        element("p", element("strong", "Out of tolerance" if broken else "Within tolerance"), class_="headline"),
        *(element("p", one) for one in broken),
        class_=f"verdict {'flagged' if broken else 'clear'}",
    )
    said = f"{inside:,} of {len(frame):,} rows predicted within {BAND:.0%}"
    picture = chart(
        "scatter", 0, f"Every row: {said}", f"Predicted against measured step times: {said}", _rows(found),
        "Solid: equal. Dashed: 20 % more and less. Names above the plot switch tables off and on.",
    ) if len(frame) else Html("")  # fmt: skip
    skipped = [
        (scores.table, Cell(f"{count:,}", count), reason)
        for scores in found.tables
        for reason, count in scores.skipped.items()
    ]
    body = joined(
        (
            verdict,
            section(
                "Scores",
                _scores((*found.tables, found.overall)),
                element("p", EXPLAINED, class_="note"),
                id_="scores",
            ),
            section("Predicted against measured", picture, id_="rows"),
            section(
                "Rows without a prediction",
                table(("table", "rows", "reason"), skipped, caption="Skipped") if skipped else element("p", "None."),
                id_="skipped",
            ),
        ),
        "\n",
    )
    return document("Predicted against measured step times", body, {"validation": _data(frame)})


def _scores(scores: Sequence[Scores]) -> Html:
    rows = [
        [
            one.table if figure == "table" else Cell(words(getattr(one, figure)), getattr(one, figure))
            for _, figure, words in COLUMNS
        ]
        for one in scores
    ]
    return table([name for name, *_ in COLUMNS], rows, caption="Scores by table")


def _rows(found: Validation) -> Html:
    """Each table's rows inside the band: the picture in figures."""
    rows: list[list[str | Cell]] = []
    for name, frame in found.frame[found.frame.predicted_s.notna()].groupby("table"):
        off = frame.predicted_s / frame.step_s - 1
        near, over, under = ((off.abs() <= BAND), (off > BAND), (off < -BAND))
        cells = [Cell(_percent(float(one.mean())), float(one.mean())) for one in (under, near, over)]
        rows.append([str(name), Cell(f"{len(frame):,}", len(frame)), *cells])
    return table(("table", "rows", "over 20 % less", "within 20 %", "over 20 % more"), rows, caption="Rows by error")


def _data(frame: pd.DataFrame) -> dict[str, Any]:
    names = sorted({str(name) for name in frame.table})
    number = {name: index for index, name in enumerate(names)}
    points = [
        [
            number[str(row.table)], float(f"{row.step_s:.4g}"), float(f"{row.predicted_s:.4g}"),
            f"{row.model_id}, {row.gpus} x {row.gpu}, {row.precision}, {row.arch}, batch {row.batch}",
        ]
        for row in frame.itertuples()
    ]  # fmt: skip
    return {"tables": names, "points": points, "band": BAND}
