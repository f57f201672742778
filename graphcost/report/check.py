"""``graphcost check`` as text, JSON and a pull request's comment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from graphcost.diffing import METRICS
from graphcost.project.checking import CheckResult
from graphcost.project.judging import ModelCheck, Status
from graphcost.report.changes import (
    before,
    counts_line,
    growth,
    label,
    operator_line,
    operators_summary,
    value,
)
from graphcost.report.tables import DEFAULT_WIDTH, markdown_table, table_text

SHOWN = ("comm_share", "step_s", "peak_bytes", "params")
"""Metrics that every table of a check shows."""
_MOST_OPERATORS = 12
_VERBS = {Status.FAIL: "fail", Status.ERROR: "cannot be judged", Status.WARN: "warn", Status.PASS: "pass"}


def check_json(check: CheckResult, **_: Any) -> str:
    """The whole result; the schema ships as ``check.schema.json``."""
    return json.dumps(check.to_dict(), indent=2, allow_nan=False) + "\n"


def check_text(check: CheckResult, *, width: int = DEFAULT_WIDTH, **_: Any) -> str:
    """A table of models, then every finding; one line where nothing is found and nothing changed."""
    if check.quiet and check.base is not None:
        return summary(check) + "\n"
    columns = ["model", "status", *(METRICS[key].label for key in SHOWN)]
    rows = [[model.name, status_word(model), *metric_cells(model)] for model in check.models]
    parts = [table_text(columns, rows, right=range(2, 6), width=width)]
    for model in check.models:
        lines = _lines(model)
        if lines:
            parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, summary(check) + "\n"])


def check_markdown(check: CheckResult, **_: Any) -> str:
    """A comment with a marker to find it by: the models that changed or have findings, details folded away."""
    lines = [marker(check), f"### graphcost: {_md(summary(check))}", ""]
    loud = [model for model in check.models if not _is_quiet(model)]
    if loud:
        columns = ["model", "status", *(METRICS[key].label for key in SHOWN)]
        lines.append(
            markdown_table(columns, [[_code(m.name), status_word(m), *map(_md, metric_cells(m))] for m in loud])
        )
        lines += _bullets(loud)
        lines += [text for model in loud for text in _details(model)]
    quiet = len(check.models) - len(loud)
    if quiet and loud:
        lines.append(f"{quiet} other model{'' if quiet == 1 else 's'}: within budget, nothing changed.\n")
    if check.notes:
        lines += [f"> {_md(note)}" for note in check.notes]
    return "\n".join(lines).rstrip("\n") + "\n"


def marker(check: CheckResult) -> str:
    """The comment's first line, the same in every run of one configuration."""
    return f"<!-- graphcost check: {check.config.replace('--', '-')} -->"


def summary(check: CheckResult) -> str:
    """One line: how many models pass, and what changed against what."""
    counts = Counter(model.status for model in check.models if model.change != "removed")
    total = sum(counts.values())
    parts = [f"{counts[status]} of {total} models {verb}" for status, verb in _VERBS.items() if counts[status]]
    if counts[Status.PASS] == total:
        parts = [f"{total} model{' passes' if total == 1 else 's pass'}"]
    if check.base is None:
        return ", ".join(parts)
    commit = f" ({check.base.commit[:9]})" if check.base.commit else ""
    changes = Counter(model.change for model in check.models)
    changed = ", ".join(f"{changes[what]} {what}" for what in ("changed", "added", "removed") if changes[what])
    return f"{', '.join(parts)}; {changed or 'nothing changed'} against {check.base.name}{commit}"


def status_word(model: ModelCheck) -> str:
    """The status as reports shout it, and whether the model is new or gone."""
    if model.change == "removed":
        return "removed"
    word = str(model.status).upper() if model.status in (Status.FAIL, Status.ERROR) else str(model.status)
    return f"{word}, added" if model.change == "added" else word


def metric_cells(model: ModelCheck) -> list[str]:
    """Each shown metric, with its growth where it differs."""
    if model.analysis is None:
        return ["-"] * len(SHOWN)
    differing = {delta.metric: delta for delta in model.deltas}
    cells = []
    for key in SHOWN:
        now = METRICS[key].of(_data(model))
        text = "-" if now is None else METRICS[key].show(now)
        cells.append(f"{text} ({growth(differing[key])})" if key in differing else text)
    return cells


def _data(model: ModelCheck) -> dict[str, Any]:
    """The sections that ``SHOWN`` reads."""
    found = model.analysis
    assert found is not None
    return {
        "step": {"step_s": found.step.step_s, "comm_share": found.step.comm_share},
        "training": {"memory": {"peak_bytes": found.training.memory.peak_bytes}},
        "graph": {"params": found.graph.params},
    }


def _is_quiet(model: ModelCheck) -> bool:
    return model.status is Status.PASS and model.change in (None, "unchanged") and not model.remarkable


def _lines(model: ModelCheck) -> list[str]:
    """The text under the table, for one model."""
    lines = [f"{model.name}: error: {model.error}"] if model.error else []
    for finding in model.findings:
        ignored = f" (ignored: {finding.ignored})" if finding.ignored else ""
        where = f" {finding.where}" if finding.rule in ("budget", "regression") else ""
        lines.append(f"{model.name}: {finding.level}: {finding.rule}{where}: {finding.message}{ignored}")
    return [*lines, *(f"  {text}" for text in _change_lines(model))]


def _change_lines(model: ModelCheck) -> list[str]:
    """What changed besides the numbers of the table: settings, operators."""
    lines = [f"settings: {', '.join(model.settings)}"] if model.settings else []
    if model.operators is not None and (model.operators.changes or model.operators.rewired):
        shown = model.operators.changes[:_MOST_OPERATORS]
        lines.append(f"operators: {operators_summary(model.operators)}")
        lines += [f"  {operator_line(change)}" for change in shown]
        more = len(model.operators.changes) - len(shown)
        lines += [f"  and {more} more kinds"] if more else []
    elif model.counts:
        lines.append(f"operators: {counts_line(model.counts)}")
    return lines


def _bullets(models: Sequence[ModelCheck]) -> list[str]:
    """Errors and findings; what is ignored is said after its reason."""
    lines = [f"- {_code(m.name)} **error**: {_md(m.error)}" for m in models if m.error]
    for model in models:
        for finding in model.findings:
            where = f" `{finding.where}`" if finding.rule in ("budget", "regression") else ""
            text = f"- {_code(model.name)} **{finding.rule}**{where}: {_md(finding.message)}"
            lines.append(f"{text} _(ignored: {_md(finding.ignored)})_" if finding.ignored else text)
    return [*lines, ""] if lines else []


def _details(model: ModelCheck) -> list[str]:
    """One folded section: every metric that differs, settings and operators."""
    if model.change != "changed":
        return []
    rows = [[label(d), before(d), value(d), growth(d)] for d in model.deltas]
    text = _change_lines(model)
    inside = [markdown_table(["", "before", "now", "change"], rows)] if rows else []
    inside += ["```text", *text, "```", ""] if text else []
    return [f"<details><summary>{escape(model.name)}: what changed</summary>", "", *inside, "</details>", ""]


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"


def _md(text: str | None) -> str:
    """Text that Markdown and HTML leave alone."""
    return escape(text or "", quote=False).replace("*", "\\*").replace("_", "\\_").replace("\n", " ")
