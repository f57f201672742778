"""``graphcost diff`` as text, JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from graphcost._version import __version__
from graphcost.diffing import ModelDiff
from graphcost.report.changes import before, counts_line, growth, label, operator_line, operators_summary, value
from graphcost.report.tables import DEFAULT_WIDTH, markdown_table, table_text
from graphcost.result import SCHEMA_VERSION, plain

_COLUMNS = ["", "before", "now", "change"]


def render_diff(diffs: Sequence[ModelDiff], form: str, *, top: int = 20, width: int = DEFAULT_WIDTH) -> str:
    """``diffs`` in one of ``DIFF_FORMATS``; ``top``: operators shown."""
    return DIFF_FORMATS[form](diffs, top, width)


def _nothing(diffs: Sequence[ModelDiff]) -> str:
    names = ", ".join(diff.name for diff in diffs)
    return f"nothing changed: {names if len(diffs) <= 3 else f'{len(diffs)} models'}\n"


def _text(diffs: Sequence[ModelDiff], top: int, width: int) -> str:
    changed = [diff for diff in diffs if diff.what != "unchanged"]
    if not changed:
        return _nothing(diffs)
    parts = []
    for diff in changed:
        parts.append(f"{diff.name}: {diff.what}")
        if diff.what != "changed":
            rows = [[label(d), value(d)] for d in diff.same]
            parts.append(table_text(["", diff.what], rows, right=(1,), width=width))
            continue
        if diff.settings:
            parts.append(f"settings: {', '.join(diff.settings)}")
        parts.append(
            table_text(_COLUMNS, _rows(diff), right=(1, 2, 3), width=width) if diff.deltas else "no total changed"
        )
        parts += [*_operators(diff, top), ""]
    same = len(diffs) - len(changed)
    return "\n".join([*parts, *([f"{same} other models: nothing changed"] if same else [])]).rstrip("\n") + "\n"


def _rows(diff: ModelDiff) -> list[list[str]]:
    return [[label(d), before(d), value(d), growth(d)] for d in diff.deltas]


def _operators(diff: ModelDiff, top: int) -> list[str]:
    if diff.operators is None:
        known = [f"operators: {counts_line(diff.counts)}"] if diff.counts else []
        return [*known, "operators: not in both results; write them with --per-op to compare them one by one"]
    lines = [f"operators: {operators_summary(diff.operators)}, {diff.operators.unchanged} unchanged"]
    lines += [f"  {operator_line(change)}" for change in diff.operators.changes[:top]]
    more = len(diff.operators.changes) - top
    return [*lines, f"  and {more} more kinds (--top)"] if more > 0 else lines


def _json(diffs: Sequence[ModelDiff], top: int, width: int) -> str:
    head = {"schema_version": SCHEMA_VERSION, "graphcost_version": __version__, "command": "diff"}
    return json.dumps({**head, "models": [plain(diff) for diff in diffs]}, indent=2, allow_nan=False) + "\n"


def _markdown(diffs: Sequence[ModelDiff], top: int, width: int) -> str:
    changed = [diff for diff in diffs if diff.what != "unchanged"]
    if not changed:
        return _nothing(diffs)
    parts = []
    for diff in changed:
        parts += [f"### {diff.name}: {diff.what}", ""]
        parts += [f"Settings: {', '.join(diff.settings)}", ""] if diff.settings else []
        parts += [markdown_table(_COLUMNS, _rows(diff))] if diff.deltas else []
        if diff.what == "changed":
            parts += ["```text", *_operators(diff, top), "```", ""]
    return "\n".join(parts).rstrip("\n") + "\n"


DIFF_FORMATS: Mapping[str, Callable[[Sequence[ModelDiff], int, int], str]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
}
