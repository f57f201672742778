"""``graphcost compare`` as text, JSON, Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO

from graphcost._version import __version__
from graphcost.comparison import Comparison
from graphcost.parallel.mesh import spoken
from graphcost.predict.step_time import BUBBLE
from graphcost.report.page.comparison import comparison_page
from graphcost.report.parts import BILL_COLUMNS, bill_cells, bill_row, precision_text
from graphcost.report.tables import DEFAULT_WIDTH, markdown_table, table_text
from graphcost.result import SCHEMA_VERSION, Analysis
from graphcost.units import format_bytes, format_kwh, format_rate, format_seconds, format_share, format_usd

_COLUMNS = [
    "arch", "GPUs", "servers", "samples/s", "step", "comm", "exposed", "bubble", "verdict", "bound", "scaling",
    "memory", "fits",
]  # fmt: skip
"""``comm``: share of the step that waits for others; of it ``exposed`` is sending, ``bubble`` a pipeline's."""
_NARROW = ("servers", "scaling", "bound", "exposed", "verdict", "bubble")
"""What gives way in a narrow window, in this order."""
_RIGHT = (1, 2, 3, 4, 5, 6, 7, 10, 11)
_BILL_COLUMNS = ["kWh/M samples", "USD/M samples"]


def render_comparisons(comparisons: Sequence[Comparison], form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """``comparisons`` in one of ``COMPARE_FORMATS``."""
    return COMPARE_FORMATS[form](comparisons, width)


def _cells(result: Analysis) -> list[str]:
    place, step, memory = result.placement, result.step, result.training.memory
    bubble_s = bubble_of(result)
    return [
        spoken(place.arch),
        str(place.gpus),
        str(place.servers),
        format_rate(step.samples_per_s),
        format_seconds(step.step_s),
        format_share(step.comm_share),
        format_seconds(step.exposed_comm_s - bubble_s),
        format_seconds(bubble_s),
        step.verdict,
        step.bound.replace("communication", "comm"),
        format_share(step.scaling_efficiency),
        format_bytes(memory.peak_bytes),
        "yes" if memory.fits else "no",
    ]


def bubble_of(result: Analysis) -> float:
    """Seconds of a step in which a pipeline fills and drains; 0 without stages."""
    return sum(message.exposed_s for message in result.communication if message.what == BUBBLE)


def _text(comparisons: Sequence[Comparison], width: int) -> str:
    parts = []
    for comparison in comparisons:
        place, training = comparison.ranked[0].placement, comparison.ranked[0].training
        where = f"{comparison.name} on {place.cluster} ({place.device}), {place.profile} profile"
        where += f", {precision_text(training.precision, True)}" if training.master_weights else ""
        parts.append(f"{where}, fastest first{_behind(comparison)}")
        rows = [_cells(result) for result in comparison.ranked]
        parts.append(table_text(_COLUMNS, rows, right=_RIGHT, width=width, spare=_NARROW).rstrip("\n"))
        parts += [
            f"not possible: {refusal.arch} on {refusal.gpus} GPUs: {refusal.reason}" for refusal in comparison.refused
        ]
        parts += ["", _bills(comparison.ranked, width)]
    return "\n".join(parts)


def _behind(comparison: Comparison) -> str:
    fits = {result.training.memory.fits for result in comparison.ranked}
    return ", what does not fit behind" if len(fits) > 1 else ""


def _bills(ranked: Sequence[Analysis], width: int) -> str:
    """Energy and cost in the same order, with what is not known of them."""
    rows = []
    for result in ranked:
        row, (kwh, usd) = bill_row(result), bill_cells(result)
        energy = _interval(format_kwh, row["kwh_per_million_samples_low"], row["kwh_per_million_samples_high"])
        cost = _interval(format_usd, row["usd_per_million_samples_low"], row["usd_per_million_samples_high"])
        rows.append([spoken(result.placement.arch), str(result.placement.gpus), kwh, energy, usd, cost])
    table = table_text(["arch", "GPUs", "kWh", "interval", "USD", "interval"], rows, right=(1, 2, 4), width=width)
    unknown = dict.fromkeys(
        f"{result.placement.arch}: {reason}" if reason.startswith("hosts") else reason
        for result in ranked
        for reason in result.bill.unknown
    )
    lines = "".join(f"not known: {reason}\n" for reason in unknown)
    return f"energy and cost of a million samples\n{table}{lines}"


def _interval(words: Callable[[float], str], low: float | None, high: float | None) -> str:
    return "" if low is None or high is None or low == high else f"{words(low)} to {words(high)}"


def _json(comparisons: Sequence[Comparison], width: int) -> str:
    results = [result.to_dict() for comparison in comparisons for result in comparison.ranked]
    refused = [
        {"model": comparison.source, **asdict(refusal)}
        for comparison in comparisons
        for refusal in comparison.refused
    ]
    data = {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": "compare",
        "results": results,
        "refused": refused,
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _markdown(comparisons: Sequence[Comparison], width: int) -> str:
    return "\n".join(
        f"### {comparison.name}\n\n"
        + markdown_table(
            [*_COLUMNS, *_BILL_COLUMNS],
            [[*_cells(result), *bill_cells(result)] for result in comparison.ranked],
        )
        for comparison in comparisons
    )


def _csv(comparisons: Sequence[Comparison], width: int) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns = [
        "step_s",
        "input_s",
        "compute_s",
        "memory_s",
        "host_s",
        "comm_s",
        "exposed_comm_s",
        "comm_share",
        "verdict",
        "bound",
        "samples_per_s",
        "scaling_efficiency",
    ]
    further = ["bubble_s", "peak_bytes", "fits"]
    writer.writerow(["model", "arch", "gpus", "servers", *columns, *BILL_COLUMNS, *further])
    for comparison in comparisons:
        for result in comparison.ranked:
            step = asdict(result.step)
            writer.writerow(
                [
                    comparison.name,
                    result.placement.arch,
                    result.placement.gpus,
                    result.placement.servers,
                    *(step[c] for c in columns),
                    *bill_row(result).values(),
                    bubble_of(result),
                    result.training.memory.peak_bytes,
                    result.training.memory.fits,
                ]
            )
    return buffer.getvalue()


def _html(comparisons: Sequence[Comparison], width: int) -> str:
    return comparison_page(comparisons)


COMPARE_FORMATS: Mapping[str, Callable[[Sequence[Comparison], int], str]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
    "csv": _csv,
    "html": _html,
}
