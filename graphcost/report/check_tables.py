"""``graphcost check`` as CSV, LaTeX and HTML: what analyses show, with status and growth beside it."""

from __future__ import annotations

from typing import Any

from graphcost.diffing import METRICS
from graphcost.project.checking import CheckResult
from graphcost.project.judging import ModelCheck
from graphcost.report.check import SHOWN, metric_cells, status_word, summary
from graphcost.report.latex import latex_report
from graphcost.report.markdown import csv_report, result_row, rows_csv
from graphcost.report.page import html_report
from graphcost.report.page.markup import element, section, table
from graphcost.report.tables import latex_table

_COLUMNS = ("model", "status", *(METRICS[key].label for key in SHOWN))


def check_csv(check: CheckResult, *, per_op: bool = False, **detail: Any) -> str:
    """One row a model; against a base also what every metric was there (``base_...``, empty for a new one)."""
    if per_op or check.base is None:
        return csv_report(check.analyses, per_op=per_op, **detail)
    rows = []
    for model in check.models:
        if model.analysis is not None:
            compared = () if model.change == "added" else (*model.deltas, *model.same)
            was = {delta.metric: delta.base for delta in compared}
            rows.append({
                **result_row(model.analysis),
                "status": str(model.status),
                "change": model.change,
                **{f"base_{key}": was.get(key) for key in METRICS},
            })  # fmt: skip
    return rows_csv(rows)


def check_latex(check: CheckResult, *, per_op: bool = False, **detail: Any) -> str:
    """The table of the text report, growth in parentheses; without a base that of the analyses."""
    if per_op or check.base is None:
        return latex_report(check.analyses, per_op=per_op, **detail)
    return latex_table(_COLUMNS, _rows(check))


def check_html(check: CheckResult, **detail: Any) -> str:
    """The page of the analyses; against a base a table of what changed goes before them."""
    if check.base is None:
        return html_report(check.analyses, **detail)
    changed = section(
        "Check",
        element("p", f"{summary(check)}."),
        table(_COLUMNS, _rows(check), caption=f"Models against {check.base.name}"),
        id_="check",
    )
    return html_report(check.analyses, before=changed, **detail)


def _rows(check: CheckResult) -> list[list[str]]:
    return [_row(model) for model in check.models]


def _row(model: ModelCheck) -> list[str]:
    return [model.name, status_word(model), *metric_cells(model)]
