"""The part of a page that is about one model: verdict, then why, then everything."""

from __future__ import annotations

from graphcost.report import palette
from graphcost.report.page.communication import communication_section
from graphcost.report.page.markup import Cell, Html, chart, element, joined, section, table
from graphcost.report.page.words import (
    RESULT_COLUMNS,
    headline,
    memory_words,
    operator_cells,
    part_rows,
    phases_words,
    placed,
    result_cells,
    seconds_cell,
)
from graphcost.report.timeline import memory_timeline
from graphcost.result import Analysis
from graphcost.units import (
    format_bandwidth,
    format_bytes,
    format_count,
    format_flops,
    format_flops_per_s,
    format_macs,
    format_rate,
    format_seconds,
    format_share,
)

VERDICTS = {"flagged": "Flagged", "clear": "Clear", "too-close": "Too close to call"}
_NO_DETAILS = "Not computed for this result: graphcost.comparison.analyze_in_detail does, as the command line."


def model_section(r: Analysis, number: int, *, top: int = 10) -> Html:
    """Everything about ``r``, the page's model ``number``."""
    parts = [
        _verdict(r),
        _step(r, number),
        communication_section(r, number),
        _roofline(r, number),
        _memory(r, number),
        _architectures(r, number),
        _operators(r, number, top),
        _modules(number),
        _graph(r, number),
    ]
    return element("article", element("h2", r.model.name), *parts, id=f"m{number}")


def _verdict(r: Analysis) -> Html:
    step = r.step
    between = f"{format_seconds(step.step_low_s)} to {format_seconds(step.step_high_s)}"
    figures = [
        ("step", format_seconds(step.step_s), between if step.step_low_s < step.step_high_s else "no interval"),
        ("throughput", format_rate(step.samples_per_s), "samples/s"),
        ("scaling", format_share(step.scaling_efficiency), "of the step without communication"),
        ("bound by", step.bound, ""),
        (
            "peak memory",
            format_bytes(r.training.memory.peak_bytes),
            "fits" if r.training.memory.fits else "does not fit",
        ),
        ("parameters", format_count(r.graph.params), format_bytes(r.graph.param_bytes)),
    ]
    tiles = joined(
        element("div", element("dt", name), element("dd", value, element("small", note)))
        for name, value, note in figures
    )
    warnings = [finding for finding in r.findings if finding.rule != "communication-share"]
    said = [element("li", f"{one.level}: {one.message}") for one in warnings]
    said += [element("li", f"note: {note}") for note in r.model.notes]
    at_32 = step.comm_share_at_batch_32
    if at_32 is not None:
        said.append(element("li", f"note: at batch 32 the share is {format_share(at_32)}"))
    banner = element(
        "div",
        element("p", element("strong", VERDICTS[step.verdict]), ": ", headline(r), class_="headline"),
        element("p", step.reason) if step.reason else Html(""),
        class_=f"verdict {step.verdict}",
    )
    notes = element("ul", joined(said), class_="notes") if said else Html("")
    return joined((banner, element("p", placed(r), class_="placed"), element("dl", tiles, class_="tiles"), notes))


def _step(r: Analysis, number: int) -> Html:
    rows = [(name, seconds, share, note) for name, seconds, share, note in part_rows(r)]
    rows.append((palette.HIDDEN, seconds_cell(r.step.hidden_comm_s), Cell("", None), "beside the step, in no sum"))
    said = "Step by part: " + ", ".join(f"{name} {share.shown}" for name, _, share, _ in part_rows(r))
    picture = chart(
        "step", number, f"The step: {format_seconds(r.step.step_s)}", said,
        table(("part", "time", "share", "note"), rows, caption="Parts of the step"),
        " ".join((phases_words(r) + ".", "The 80 % interval rests on", r.step.interval_evidence + "."))
        if phases_words(r) else "",
    )  # fmt: skip
    return section("Where the step goes", picture, id_=f"m{number}-step")


def _roofline(r: Analysis, number: int) -> Html:
    details = r.details
    if details is None or r.predicted is None or not r.predicted.ops:
        words = "The paper profile times no operator, so that there is nothing to draw."
        return section("Roofline", element("p", words), id_=f"m{number}-roofline")
    rows = [(roof.name, Cell(format_flops_per_s(roof.flops_per_s), roof.flops_per_s)) for roof in details.roofs]
    rows.append(("memory", Cell(format_bandwidth(details.mem_bytes_per_s), details.mem_bytes_per_s)))
    picture = chart(
        "roofline", number, f"Operators under the roofs of {details.device}",
        f"Roofline: {len(r.predicted.ops)} kernels of the step under the roofs of {details.device}",
        table(("roof", "rate"), rows, caption="Roofs: nominal, dense"),
        "A point is a kernel of the forward or backward pass or the update, or several with equal work; its area is "
        "its share of the time. Roofs are nominal rates. What computes nothing has no place here.",
    )  # fmt: skip
    return section("Roofline", picture, id_=f"m{number}-roofline")


def _memory(r: Analysis, number: int) -> Html:
    words, line = element("p", memory_words(r)), memory_timeline(r)
    if line is None or r.details is None:
        return section("Memory", words, element("p", _NO_DETAILS, class_="note"), id_=f"m{number}-memory")
    totals = [sum(values) for values in zip(*line.bands.values(), strict=True)]
    rows: list[list[str | Cell]] = []
    for phase, begin, end in line.phases:
        inside = [index for index, x in enumerate(line.x) if begin <= x <= end]
        if inside:
            at = max(inside, key=lambda index: totals[index])
            cells = [Cell(format_bytes(band[at]), band[at]) for band in line.bands.values()]
            rows.append([phase, Cell(format_bytes(totals[at]), totals[at]), *cells])
    clock = "GPU time of one micro-batch, without waiting" if line.unit == "s" else "allocations in order"
    picture = chart(
        "memory", number, f"Memory over the step; {r.details.device} has {format_bytes(r.details.mem_bytes)}",
        memory_words(r), table(("fullest moment of", "all", *line.bands), rows, caption="Memory at its fullest"),
        f"Across: {clock}. Workspaces of libraries and fragmentation are not in it.",
    )  # fmt: skip
    return section("Memory", words, picture, id_=f"m{number}-memory")


def _architectures(r: Analysis, number: int) -> Html:
    if r.details is None or r.details.architectures is None:
        return section("Architectures", element("p", _NO_DETAILS, class_="note"), id_=f"m{number}-architectures")
    refused = [element("li", f"not possible: {reason}") for reason in r.details.refused]
    others = r.details.architectures
    notes = element("ul", joined(refused), class_="notes") if refused else Html("")
    if not others:
        return section("Architectures", notes, id_=f"m{number}-architectures")
    gpus = r.placement.gpus
    said = "Step by architecture: " + ", ".join(f"{o.placement.arch} {format_seconds(o.step.step_s)}" for o in others)
    picture = chart(
        "archs", number, f"The same model on {gpus} GPU{'s' if gpus > 1 else ''}, fastest first",
        said, table(RESULT_COLUMNS, map(result_cells, others), caption="Every architecture"),
    )  # fmt: skip
    return section("Architectures", picture, notes, id_=f"m{number}-architectures")


def _operators(r: Analysis, number: int, top: int) -> Html:
    """The heaviest as they stand; the page's script puts all of them here, to sort and search."""
    ranked = sorted((op for op in r.ops if op.counted), key=lambda op: -(op.time_s or 0.0))[:top]
    heaviest = table(
        ("operator", "name", "time", "FLOP", "bytes", "bound"),
        map(operator_cells, ranked),
        caption="Heaviest operators",
    )
    holder = element("div", heaviest, data_operators=str(number))
    note = "Time: forward and backward; FLOP, bytes: forward; parameters with buffers."
    return section(
        f"Operators ({len(r.ops):,})", holder, element("p", note, class_="note"), id_=f"m{number}-operators"
    )


def _modules(number: int) -> Html:
    return section("Modules", element("div", data_modules=str(number)), id_=f"m{number}-modules")


def _graph(r: Analysis, number: int) -> Html:
    graph, training, coverage = r.graph, r.training, r.graph.coverage
    unknown = sum(one.count for one in coverage.unknown)
    named = [element("li", f"no rule: {one.op_type} x{one.count}, such as {one.example}") for one in coverage.unknown]
    whole = training.forward_flops + training.backward_flops + training.update_flops
    rows = [
        ("multiply-adds, forward", format_macs(graph.macs), _exact(graph.macs)),
        ("contractions, forward", format_flops(graph.matmul_flops), _exact(graph.matmul_flops)),
        ("elementwise, forward", format_flops(graph.elementwise_flops), _exact(graph.elementwise_flops)),
        ("training step", format_flops(whole), _exact(whole)),
        ("parameters", format_count(graph.params), _exact(graph.params)),
        ("buffers", format_count(graph.buffers), _exact(graph.buffers)),
        ("forward traffic, eager", format_bytes(training.bytes.eager_bytes), _exact(training.bytes.eager_bytes)),
        ("forward traffic, fused", format_bytes(training.bytes.fused_bytes), _exact(training.bytes.fused_bytes)),
        ("operators counted", str(coverage.counted), _exact(coverage.counted)),
        ("operators free by decision", str(coverage.free), _exact(coverage.free)),
        ("operators without a rule", str(unknown), _exact(unknown)),
        ("operators constant, folded", str(coverage.folded), _exact(coverage.folded)),
    ]  # fmt: skip
    shapes = [
        (name, f"{'x'.join(map(str, spec['shape'])) or 'scalar'} {spec['dtype']}")
        for name, spec in r.model.inputs.items()
    ]
    return section(
        "Graph",
        element("p", f"{r.model.format}, read from {r.model.source}"),
        table(("what", "about", "exactly"), rows, caption="Totals"),
        element("ul", joined(named), class_="notes") if named else Html(""),
        table(("input", "shape"), shapes, caption="Inputs") if shapes else Html(""),
        id_=f"m{number}-graph",
    )


def _exact(count: int) -> Cell:
    return Cell(f"{count:,}", count)
