"""``graphcost validate`` as text, JSON and one HTML page with predicted against measured times."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from graphcost._version import __version__
from graphcost.errors import UsageError
from graphcost.report.tables import DEFAULT_WIDTH, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.validation import Scores, Tolerance

if TYPE_CHECKING:
    import pandas as pd

    from graphcost.validation import Validation

_HEADS = (
    "table", "rows", "predicted", "median", "mean", "p90", "bias", "rank", "scaling", "share", "winner", "verdict",
    "interval",
)  # fmt: skip


_WIDTH = 150
"""Columns that the table needs; narrower it would lose figures."""


def render_validation(found: Validation, form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """The scores of every table in one of ``VALIDATION_FORMATS``."""
    return VALIDATION_FORMATS[form](found, width)


def _cells(scores: Scores) -> list[str]:
    return [
        scores.table,
        f"{scores.rows:,}",
        f"{scores.predicted:,}",
        _percent(scores.median_error),
        _percent(scores.mean_error),
        _percent(scores.p90_error),
        _percent(scores.bias, sign=True),
        _plain(scores.rank_correlation),
        _points(scores.scaling_error_points),
        _points(scores.comm_share_error_points),
        _percent(scores.winner_accuracy),
        _percent(scores.verdict_accuracy),
        _percent(scores.interval_coverage),
    ]


def _text(found: Validation, width: int) -> str:
    rows = [_cells(scores) for scores in (*found.tables, found.overall)]
    parts = [table_text(_HEADS, rows, right=tuple(range(1, len(_HEADS))), width=max(width, _WIDTH))]
    parts.append(
        "Errors of step times: medians of (model, GPU, precision, GPUs, architecture), averaged by model. Scaling: "
        "T(1)/T(n); share: exposed communication; both in points."
    )
    for scores in found.tables:
        parts += [f"{scores.table}: {count:,} skipped: {reason}" for reason, count in scores.skipped.items()]
    parts += [_sentence(table, limit, reached) for table, limit, reached in found.broken]
    return "\n".join(parts) + "\n"


def _sentence(table: str, limit: Tolerance, reached: float) -> str:
    return f"out of tolerance: {table}: {limit.figure} is {reached:.3g}, its limit is {limit.limit:g}"


def _json(found: Validation, width: int) -> str:
    data = {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": "validate",
        "results": [asdict(scores) for scores in found.tables],
        "overall": asdict(found.overall),
        "out_of_tolerance": [
            {"table": table, "figure": limit.figure, "limit": limit.limit, "reached": reached}
            for table, limit, reached in found.broken
        ],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _html(found: Validation, width: int) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in _HEADS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(scores)) + "</tr>"
        for scores in (*found.tables, found.overall)
    )
    skipped = "".join(
        f"<li>{escape(scores.table)}: {count:,} rows: {escape(reason)}</li>"
        for scores in found.tables
        for reason, count in scores.skipped.items()
    )
    broken = "".join(f"<p><strong>{escape(_sentence(*one))}</strong></p>" for one in found.broken)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>graphcost validate</title>"
        f"<style>{_STYLE}</style><h1>Predicted against measured</h1>{broken}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{_scatter(found.frame)}<h2>Rows without a prediction</h2><ul>{skipped}</ul></html>\n"
    )


_STYLE = """
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;max-width:70rem;margin:1rem auto;padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
td,th{padding:.15rem .6rem;text-align:right}td:first-child,th:first-child{text-align:left}
tr:nth-child(even){background:#8881}
figure{margin:1rem 0;background:#fff;max-width:44rem}svg{max-width:100%;height:auto}
"""


def _scatter(frame: pd.DataFrame) -> str:
    """Measured against predicted step times on logarithmic axes, a colour a table, as an inline picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--format html draws with matplotlib: pip install 'graphcost[plot]'") from None
    done = frame[frame.predicted_s.notna()]
    figure = Figure(figsize=(7, 6.2), layout="constrained")
    axes = figure.add_subplot()
    for table, rows in done.groupby("table"):
        axes.scatter(rows.step_s, rows.predicted_s, s=9, alpha=0.5, linewidths=0, label=f"{table} ({len(rows)})")
    if len(done):
        low, high = done[["step_s", "predicted_s"]].min().min(), done[["step_s", "predicted_s"]].max().max()
        for factor, style in ((1.0, "-"), (1.25, ":"), (1 / 1.25, ":")):
            axes.plot([low, high], [factor * low, factor * high], style, color="0.4", linewidth=0.8)
        axes.set(xscale="log", yscale="log")
        axes.legend(fontsize=7, frameon=False)
    axes.set(xlabel="measured step, s", ylabel="predicted step, s", title="Dotted: 25 % off")
    picture = io.StringIO()
    figure.savefig(picture, format="svg", metadata={"Date": None})
    svg = picture.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"


def _percent(value: float | None, *, sign: bool = False) -> str:
    return "" if value is None else f"{100 * value:{'+' if sign else ''}.1f} %"


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


VALIDATION_FORMATS: Mapping[str, Callable[[Any, int], str]] = {"text": _text, "json": _json, "html": _html}
