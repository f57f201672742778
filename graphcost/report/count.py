"""``graphcost count`` as text, JSON, CSV, LaTeX and Markdown."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from typing import Any

from graphcost._version import __version__
from graphcost.counting import Count
from graphcost.report.tables import DEFAULT_WIDTH, latex_table, markdown_table, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.units import format_bytes, format_count, format_flops, format_macs

_COLUMNS = [
    "model",
    "batch",
    "MAC",
    "matmul FLOP",
    "elementwise FLOP",
    "bytes",
    "parameters",
    "buffers",
    "counted / free / unknown",
]
_CSV = [
    "name",
    "source",
    "batch",
    "macs",
    "matmul_flops",
    "elementwise_flops",
    "read_bytes",
    "write_bytes",
    "params",
    "param_bytes",
    "buffers",
    "buffer_bytes",
    "ops",
    "counted",
    "free",
    "unknown",
]


def render_counts(counts: Sequence[Count], form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """``counts`` in one of ``COUNT_FORMATS``."""
    return COUNT_FORMATS[form](counts, width)


def count_to_dict(count: Count) -> dict[str, Any]:
    """The JSON of one count: ``model`` and ``graph`` as in an analysis."""
    data = asdict(count)
    model = {key: data[key] for key in ("source", "name", "format", "inputs", "bindings", "batch_source")}
    coverage = {
        "counted": count.counted,
        "free": count.free,
        "folded": count.folded,
        "unknown": [asdict(e) for e in count.unknown],
    }
    graph = {
        key: data[key]
        for key in (
            "ops",
            "macs",
            "matmul_flops",
            "elementwise_flops",
            "read_bytes",
            "write_bytes",
            "params",
            "param_bytes",
            "buffers",
            "buffer_bytes",
        )
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": "count",
        "model": {**model, "batch": count.batch, "notes": list(count.notes)},
        "graph": {**graph, "coverage": coverage},
    }


def _cells(count: Count) -> list[str]:
    unknown = sum(entry.count for entry in count.unknown)
    return [
        count.name,
        str(count.batch) if count.batch is not None else "-",
        format_macs(count.macs),
        format_flops(count.matmul_flops),
        format_flops(count.elementwise_flops),
        format_bytes(count.read_bytes + count.write_bytes),
        format_count(count.params),
        format_count(count.buffers),
        f"{count.counted} / {count.free} / {unknown}",
    ]


def _text(counts: Sequence[Count], width: int) -> str:
    return table_text(_COLUMNS, [_cells(count) for count in counts], right=range(1, 8), width=max(width, 118))


def _json(counts: Sequence[Count], width: int) -> str:
    if len(counts) == 1:
        return json.dumps(count_to_dict(counts[0]), indent=2)
    return json.dumps(
        {"schema_version": SCHEMA_VERSION, "results": [count_to_dict(count) for count in counts]}, indent=2
    )


def _csv(counts: Sequence[Count], width: int) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CSV)
    for count in counts:
        data = {**asdict(count), "unknown": sum(entry.count for entry in count.unknown)}
        writer.writerow([data[name] for name in _CSV])
    return buffer.getvalue()


def _markdown(counts: Sequence[Count], width: int) -> str:
    return markdown_table(_COLUMNS, [_cells(count) for count in counts])


def _latex(counts: Sequence[Count], width: int) -> str:
    return latex_table(_COLUMNS[:8], [_cells(count)[:8] for count in counts])


COUNT_FORMATS: Mapping[str, Callable[[Sequence[Count], int], str]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "latex": _latex,
    "markdown": _markdown,
}
