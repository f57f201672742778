"""``graphcost compare --best`` as text, JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from graphcost._version import __version__
from graphcost.parallel.mesh import spoken
from graphcost.report.parts import plural, precision_text
from graphcost.report.tables import DEFAULT_WIDTH, markdown_table, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.searching import Found, Search
from graphcost.units import format_bytes, format_rate, format_seconds, format_share

_COLUMNS = ["arch", "step", "samples/s", "bubble", "comm", "memory", "loses by"]


def render_searches(found: Sequence[Search], form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """``found`` in one of ``SEARCH_FORMATS``."""
    return SEARCH_FORMATS[form](found, width)


def _cells(one: Found) -> list[str]:
    step = one.step
    whole = step.step_s or 1.0
    return [
        spoken(one.arch),
        format_seconds(step.step_s),
        format_rate(one.samples_per_s),
        format_share(step.bubble_s / whole),
        format_share((step.exposed_comm_s - step.bubble_s) / whole),
        format_bytes(one.memory.peak_bytes),
        one.why,
    ]


def _head(one: Search) -> str:
    precision = f", {precision_text(one.precision, True)}" if one.master_weights else ""
    samples = "" if one.global_batch is None else f", {one.global_batch} samples a step"
    return (
        f"{one.name} on {plural(one.gpus, 'GPU')} of {one.cluster} ({one.device}){precision}{samples}, fastest first"
    )


def _ruled_out(one: Search) -> list[str]:
    return [f"{one.tried} meshes tried; ruled out:"] + [
        f"  {count:5d}  {reason}" for reason, count in one.ruled_out.items()
    ]


def _text(found: Sequence[Search], width: int) -> str:
    parts = []
    for one in found:
        rows = [_cells(entry) for entry in one.ranked]
        parts += [_head(one), table_text(_COLUMNS, rows, right=(1, 2, 3, 4, 5), width=width).rstrip("\n")]
        parts += _ruled_out(one)
    return "\n".join(parts) + "\n"


def _markdown(found: Sequence[Search], width: int) -> str:
    return "\n".join(
        f"### {_head(one)}\n\n" + markdown_table(_COLUMNS, [_cells(entry) for entry in one.ranked]) for one in found
    )


def _fields(one: Found) -> dict[str, Any]:
    step, memory = one.step, one.memory
    return {
        "arch": one.arch,
        "step_s": step.step_s,
        "step_low_s": step.step_low_s,
        "step_high_s": step.step_high_s,
        "samples_per_s": one.samples_per_s,
        "bubble_s": step.bubble_s,
        "exposed_comm_s": step.exposed_comm_s,
        "comm_share": step.comm_share,
        "compute_s": step.compute_s,
        "memory_s": step.memory_s,
        "host_s": step.host_s,
        "peak_bytes": memory.peak_bytes,
        "loses_by": one.why,
    }


def _json(found: Sequence[Search], width: int) -> str:
    data = {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": "compare",
        "best": [
            {
                "model": one.name,
                "source": one.source,
                "cluster": one.cluster,
                "device": one.device,
                "gpus": one.gpus,
                "global_batch": one.global_batch,
                "precision": one.precision,
                "master_weights": one.master_weights,
                "tried": one.tried,
                "ruled_out": dict(one.ruled_out),
                "ranked": [_fields(entry) for entry in one.ranked],
            }
            for one in found
        ],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _csv(found: Sequence[Search], width: int) -> str:
    buffer = StringIO()
    rows = [{"model": one.name, "gpus": one.gpus, **_fields(entry)} for one in found for entry in one.ranked]
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


SEARCH_FORMATS: Mapping[str, Callable[[Sequence[Search], int], str]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
    "csv": _csv,
}
