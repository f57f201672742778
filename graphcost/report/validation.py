"""``graphcost validate`` as text, JSON and one HTML page with predicted against measured times."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphcost._version import __version__
from graphcost.report.page.validation import COLUMNS, EXPLAINED, validation_page
from graphcost.report.tables import DEFAULT_WIDTH, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.validation import Scores, Tolerance

if TYPE_CHECKING:
    from graphcost.validation import Validation

_WIDTH = 150
"""Columns that the table needs; narrower it would lose figures."""


def render_validation(found: Validation, form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """The scores of every table in one of ``VALIDATION_FORMATS``."""
    return VALIDATION_FORMATS[form](found, width)


def _cells(scores: Scores) -> list[str]:
    return [words(getattr(scores, figure)) for _, figure, words in COLUMNS]


def _text(found: Validation, width: int) -> str:
    heads = [name for name, *_ in COLUMNS]
    rows = [_cells(scores) for scores in (*found.tables, found.overall)]
    parts = [table_text(heads, rows, right=tuple(range(1, len(heads))), width=max(width, _WIDTH)), EXPLAINED]
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
    return validation_page(found, [_sentence(*one) for one in found.broken])


VALIDATION_FORMATS: Mapping[str, Callable[[Any, int], str]] = {"text": _text, "json": _json, "html": _html}
