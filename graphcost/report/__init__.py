"""Reports: one renderer a format, all from ``Analysis``. Only the command line writes them anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from graphcost.errors import UsageError
from graphcost.report.markdown import csv_report, markdown_report
from graphcost.report.page import fragment as fragment  # what a notebook shows
from graphcost.report.page import html_report
from graphcost.report.text import text_report
from graphcost.report.trace import trace_report
from graphcost.result import SCHEMA_VERSION, Analysis

Renderer = Callable[..., str]


def json_report(results: Sequence[Analysis], *, per_op: bool = False, **_: Any) -> str:
    """One result as itself, several under ``results``."""
    if len(results) == 1:
        return results[0].to_json(per_op=per_op)
    data = {"schema_version": SCHEMA_VERSION, "results": [result.to_dict(per_op=per_op) for result in results]}
    return json.dumps(data, indent=2, allow_nan=False)


FORMATS: Mapping[str, Renderer] = {
    "text": text_report,
    "json": json_report,
    "markdown": markdown_report,
    "csv": csv_report,
    "html": html_report,
    "trace": trace_report,
}

_SUFFIXES = {
    ".txt": "text", ".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html", ".htm": "html",
    ".trace": "trace", ".trace.json": "trace",
}  # fmt: skip


def render(results: Sequence[Analysis], form: str, **detail: Any) -> str:
    """``results`` in one of ``FORMATS``; ``detail``: width, top, per_op, by."""
    if form not in FORMATS:
        raise UsageError(f"no report format named {form!r} ({', '.join(FORMATS)})")
    return FORMATS[form](results, **detail)


def format_of(output: str) -> str:
    """The format that a file's suffix chooses."""
    path = PurePath(output.lower())
    suffix = "".join(path.suffixes[-2:])
    suffix = suffix if suffix in _SUFFIXES else path.suffix
    if suffix not in _SUFFIXES:
        raise UsageError(f"--output {output}: no format for suffix {suffix!r} (known: {', '.join(_SUFFIXES)})")
    return _SUFFIXES[suffix]
