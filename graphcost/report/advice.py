"""``graphcost advise`` as text, JSON and Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping

from graphcost.advising.result import AdviceInfo, Advising, BreakEvenInfo, OutcomeInfo
from graphcost.report.parts import VERDICTS, plural, precision_text, share_text
from graphcost.report.tables import DEFAULT_WIDTH, markdown_table, table_text
from graphcost.units import format_bytes, format_rate, format_seconds, format_share

_BREAK_EVEN_COLUMNS = ["resource", "now", "share at limit", "clear", "farthest tried"]


def render_advice(found: Advising, form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """``found`` in one of ``ADVICE_FORMATS``."""
    return ADVICE_FORMATS[form](found, width)


def _text(found: Advising, width: int) -> str:
    parts = [_head(found, width), _advice(found, width), _rejected(found, width)]
    if found.break_evens:
        rows = [_break_even_cells(one) for one in found.break_evens]
        parts.append(_break_even_title(found) + "\n" + table_text(_BREAK_EVEN_COLUMNS, rows, width=width))
        parts.append(_break_even_notes(found, width))
    if found.refused:
        parts.append("not possible\n" + "".join(_filled(f"{one.what}: {one.reason}", width) for one in found.refused))
    return "\n".join(part for part in parts if part)


def _head(found: Advising, width: int) -> str:
    place, base = found.placement, found.base
    default = " (the default cluster)" if place.cluster_source == "default" else ""
    batch = f"batch {place.batch_per_gpu} per GPU" if place.batch_per_gpu is not None else "no batch dimension"
    precision = precision_text(found.precision, found.master_weights)
    lines = [
        f"{found.model.name}: {place.arch}, {plural(place.gpus, 'GPU')} on {plural(place.servers, 'server')} of "
        f"{place.cluster}{default}",
        f"{place.device}, {batch}, {precision}, {place.profile} profile, overlap {place.overlap}",
        "",
        f"{VERDICTS[found.verdict]}: communication is {_share(base)} of the step, limit "
        f"{format_share(found.max_comm_share)}",
    ]
    lines += textwrap.wrap(found.reason, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, f"  {_step(base)}"]) + "\n"


def _advice(found: Advising, width: int) -> str:
    if found.verdict == "clear":
        return "nothing to change" + "".join(f"; {note}" for note in found.notes) + "\n"
    if found.advice:
        title = "changes that clear it, least effort first"
        return title + "\n" + "\n".join(_block(f"{i}.", one, width) for i, one in enumerate(found.advice, 1))
    text = "nothing helps: no change that was tried, alone or in a pair, takes it under the limit at no loss of speed"
    if found.nearest_miss is None:
        return textwrap.fill(text, width) + "\n"
    return textwrap.fill(text + "; the nearest miss:", width) + "\n" + _block("-", found.nearest_miss, width)


def _rejected(found: Advising, width: int) -> str:
    shown = [one for one in found.rejected if one != found.nearest_miss]
    return "not advised\n" + "\n".join(_block("-", one, width) for one in shown) if shown else ""


def _block(mark: str, one: AdviceInfo, width: int) -> str:
    outcome = one.outcome
    lines = [
        f"{mark} {one.what}: {one.options}  [{one.effort}]",
        f"communication {_share(outcome)}, {_step(outcome)}, {one.throughput_speedup:.3g}x",
    ]
    if one.recommended:
        lines.append(f"memory {format_bytes(outcome.peak_bytes)} ({'fits' if outcome.fits else 'DOES NOT FIT'})")
        lines.append(f"why: {one.why}")
        lines += [f"mind: {one.caution}"] if one.caution else []
    else:
        lines += [f"but: {objection}" for objection in one.objections]
    first, *rest = lines
    title = textwrap.fill(first, width, subsequent_indent="   ")
    return f"{title}\n" + "".join(_filled(line, width) for line in rest)


def _filled(line: str, width: int) -> str:
    return textwrap.fill(line, width, initial_indent="   ", subsequent_indent="     ") + "\n"


def _share(outcome: OutcomeInfo) -> str:
    return share_text(outcome.comm_share, outcome.comm_share_low, outcome.comm_share_high)


def _step(outcome: OutcomeInfo) -> str:
    interval = ""
    if outcome.step_low_s != outcome.step_high_s:
        interval = f" ({format_seconds(outcome.step_low_s)} to {format_seconds(outcome.step_high_s)})"
    rate = f", {format_rate(outcome.samples_per_s)} samples/s" if outcome.samples_per_s is not None else ""
    return f"step {format_seconds(outcome.step_s)}{interval}{rate}"


def _break_even_title(found: Advising) -> str:
    what = "margins: each resource alone, until it is no longer clear" if found.verdict == "clear" else (
        "break-even values: each resource alone, everything else as it is"
    )  # fmt: skip
    return f"{what} (checked on both sides)"


def _break_even_cells(one: BreakEvenInfo) -> list[str]:
    # Short words: the figures must not be cut on a terminal of 80 columns.
    relation = "from" if _improves(one) and one.direction == "up" else "to"
    cells = ["-" if border is None else f"{relation} {border.under.text}" for border in (
        one.even, one.clear,
    )]  # fmt: skip
    return [one.resource, one.now_text, *cells, f"{one.end.text}: {format_share(one.end.comm_share)}"]


def _improves(one: BreakEvenInfo) -> bool:
    """Whether the border's good side is the farther one."""
    border = one.clear or one.even
    return border is not None and (border.under.value > border.over.value) == (one.direction == "up")


def _break_even_notes(found: Advising, width: int) -> str:
    noted = [one for one in found.break_evens if one.note]
    return "".join(_filled(f"{one.resource}: {one.note}", width) for one in noted)


def _json(found: Advising, width: int) -> str:
    return found.to_json()


def _markdown(found: Advising, width: int) -> str:
    base = found.base
    parts = [
        f"### {found.model.name}: {found.verdict}\n",
        f"Communication is {_share(base)} of the step, limit {format_share(found.max_comm_share)}: {found.reason}.\n",
    ]
    shown = [*found.advice, *found.rejected]
    if shown:
        columns = ["change", "options", "effort", "communication", "step", "samples/s", "gain", "verdict", "mind"]
        rows = [
            [
                one.what, f"`{one.options}`", one.effort, _share(one.outcome), format_seconds(one.outcome.step_s),
                format_rate(one.outcome.samples_per_s), f"{one.throughput_speedup:.3g}x", one.outcome.verdict,
                "; ".join([*one.objections, *([one.caution] if one.caution else [])]),
            ]
            for one in shown
        ]  # fmt: skip
        parts.append(markdown_table(columns, rows))
    if not found.advice:
        parts.append("Nothing to change.\n" if found.verdict == "clear" else "Nothing helps.\n")
    if found.break_evens:
        rows = [[*_break_even_cells(one), one.note or ""] for one in found.break_evens]
        parts.append(markdown_table([*_BREAK_EVEN_COLUMNS, "note"], rows))
    return "\n".join(parts)


ADVICE_FORMATS: Mapping[str, Callable[[Advising, int], str]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
}
