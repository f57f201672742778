"""``graphcost schedule`` as text and JSON, and its logs: events, use of every slot, a Chrome trace."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphcost._version import __version__
from graphcost.report.page.schedule import schedule_page
from graphcost.report.tables import DEFAULT_WIDTH, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.sim.comparing import Difference, Interval, Row, ScheduleComparison
from graphcost.sim.result import Event, Schedule, SlotUse
from graphcost.sim.setup import Setup
from graphcost.sim.workloads import Load, split_of
from graphcost.units import format_seconds, format_share


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was simulated: the setup, the seed, the load of its jobs, notes on them."""

    setup: Setup
    seed: int | None
    load: Load | None
    notes: tuple[str, ...]


def simulation_json(found: Schedule, drawn: Drawn) -> str:
    """One schedule."""
    data = {
        **head_of("schedule simulate", drawn),
        "scheduler": found.scheduler,
        "seed": drawn.seed,
        "split": None if drawn.seed is None else split_of(drawn.seed),
        "load": None if drawn.load is None else asdict(drawn.load),
        "metrics": asdict(found.metrics),
        "jobs": [{**asdict(job), "jct_s": job.jct_s} for job in found.jobs],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def comparison_json(found: ScheduleComparison, drawn: Drawn, split: str) -> str:
    """All schedulers; figures as mean with interval."""
    data = {
        **head_of("schedule compare", drawn),
        "split": split,
        "seeds": list(found.seeds),
        "confidence": found.confidence,
        "resamples": found.resamples,
        "schedulers": [_row(row) for row in found.rows],
        "bound": _row(found.bound),
        "differences": [asdict(difference) for difference in found.differences],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _row(row: Row) -> dict[str, Any]:
    figures = {name: None if figure is None else asdict(figure) for name, figure in row.figures.items()}
    return {"scheduler": row.scheduler, "metrics": figures}


def head_of(command: str, drawn: Drawn) -> dict[str, Any]:
    """What every JSON of ``schedule`` says first."""
    setup, options = drawn.setup, drawn.setup.options
    first = setup.cluster.nodes[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": command,
        "workload": setup.workload.name,
        "trace": None if setup.trace is None else {"file": str(options.trace), "format": setup.trace.format},
        "cluster": {
            "nodes": len(setup.cluster.nodes), "cpus_per_node": first.cpu_milli / 1e3,
            "gpus_per_node": first.gpu_milli / 1e3,
        },
        "slot_s": setup.slot_s,
        "speeds": {"name": setup.speeds.name, "source": setup.speeds.note},
        "scaling": options.scaling,
        "disturbance": {
            "speed_variation": options.speed_variation, "interference": options.interference,
            "epoch_error": options.epoch_error, "measurement_noise": options.measurement_noise,
        },
        "notes": list(drawn.notes),
    }  # fmt: skip


def simulation_text(found: Schedule, drawn: Drawn, width: int = DEFAULT_WIDTH) -> str:
    """Figures, and the jobs that took longest."""
    m = found.metrics
    seed = "" if drawn.seed is None else f", seed {drawn.seed}"
    rows = [
        ("mean completion", _time(m.mean_jct_s), f"{m.mean_jct_slots:.2f} slots" if m.mean_jct_slots else ""),
        ("median, 95th percentile", _time(m.p50_jct_s), _time(m.p95_jct_s)),
        ("mean wait for a start", _time(m.mean_wait_s), ""),
        ("makespan", _time(m.makespan_s), f"{m.slots:,} slots with jobs"),
        ("utilisation", _share(m.utilisation), f"of GPU time; CPUs {_share(m.cpu_utilisation)}"),
        ("changes of tasks", f"{m.rescales:,}", f"{format_seconds(m.scaling_s)} lost to them"),
    ]
    jobs = sorted(
        (job for job in found.jobs if job.jct_s is not None), key=lambda job: (-(job.jct_s or 0), job.job_id)
    )
    slowest = [(job.job_id, job.model, _time(job.arrival_s), _time(job.jct_s), f"{job.rescales}") for job in jobs[:5]]
    heads = ("slowest jobs", "model", "arrival", "completion", "changes")
    lost = [f"{m.unfinished:,} jobs did not finish"] if m.unfinished else []
    return "\n".join(
        [
            f"{found.scheduler}: {what_of(drawn)}{seed}, {len(found.jobs):,} jobs",
            *setting_of(drawn),
            "",
            table_text(("", "", ""), rows, right=(1,), width=width, header=False).rstrip(),
            *lost,
            "",
            table_text(heads, slowest, right=(2, 3, 4), width=width),
        ]
    )


def comparison_text(
    found: ScheduleComparison, drawn: Drawn, split: str, width: int = DEFAULT_WIDTH, learned: Sequence[str] = ()
) -> str:
    """A line a scheduler, best first, then the bound; paired differences, those of ``learned`` policies if any."""
    ordered = sorted(found.rows, key=lambda row: _mean_of(row, "mean_jct_s"))
    heads = ("scheduler", "mean completion", "interval", "slots", "p50", "p95", "makespan", "GPU use")
    table = [_cells(row) for row in (*ordered, found.bound)]
    best = ordered[0].scheduler
    policies = [_policy_sentence(one, len(found.seeds)) for one in found.differences if one.scheduler in learned]
    heading = "Paired differences in mean completion" + (":" if policies else f", against {best}:")
    sentences = policies or [text for one in found.differences if (text := _sentence(one, best, len(found.seeds)))]
    return "\n".join(
        [
            f"{what_of(drawn)}, {len(found.seeds)} {split} traces (seeds {found.seeds[0]} to {found.seeds[-1]})",
            *setting_of(drawn),
            "",
            table_text(heads, table, right=tuple(range(1, len(heads))), width=width),
            "bound: every job alone on the tasks that suit it best. Intervals: "
            f"{100 * found.confidence:.0f} % bootstrap over traces ({found.resamples:,} resamples).",
            heading if sentences else "",
            *sentences,
        ]
    )


def comparison_html(found: ScheduleComparison, drawn: Drawn, split: str) -> str:
    """One self-contained page."""
    title = f"{what_of(drawn)}: {len(found.seeds)} {split} traces"
    return schedule_page(found, title, [*setting_of(drawn), *drawn.notes])


def _cells(row: Row) -> tuple[str, ...]:
    jct = row.figures["mean_jct_s"]
    between = "-" if jct is None else f"{format_seconds(jct.low)} to {format_seconds(jct.high)}"
    slots = row.figures["mean_jct_slots"]
    return (
        row.scheduler,
        _mean(jct),
        between,
        "-" if slots is None else f"{slots.mean:.2f}",
        _mean(row.figures["p50_jct_s"]),
        _mean(row.figures["p95_jct_s"]),
        _mean(row.figures["makespan_s"]),
        "-" if (use := row.figures["utilisation"]) is None else format_share(use.mean),
    )


def _sentence(one: Difference, best: str, traces: int) -> str:
    """Only differences against ``best``; turned round where it comes first."""
    if best not in (one.scheduler, one.against):
        return ""
    sign = -1 if one.scheduler == best else 1
    name = one.against if one.scheduler == best else one.scheduler
    low, high = sorted((sign * one.mean_jct_s.low, sign * one.mean_jct_s.high))
    won = one.sooner_on if sign == 1 else one.later_on
    mean = sign * one.mean_jct_s.mean
    return f"  {name}: {mean:+,.0f} s ({low:+,.0f} to {high:+,.0f}), sooner on {won} of {traces} traces"


def _policy_sentence(one: Difference, traces: int) -> str:
    share, apart = one.relative, one.mean_jct_s
    return (
        f"  {one.scheduler} against {one.against}: {100 * share.mean:+.1f} % ({100 * share.low:+.1f} to "
        f"{100 * share.high:+.1f}), {apart.mean:+,.0f} s, sooner on {one.sooner_on} of {traces} traces"
    )


def _mean_of(row: Row, figure: str) -> float:
    found = row.figures[figure]
    return float("inf") if found is None else found.mean


def _mean(figure: Interval | None) -> str:
    return "-" if figure is None else format_seconds(figure.mean)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)


def _share(value: float | None) -> str:
    return "-" if value is None else format_share(value)


def what_of(drawn: Drawn) -> str:
    """The workload, or the trace."""
    setup = drawn.setup
    if setup.trace is None:
        return setup.workload.name
    name = "" if setup.options.trace is None else setup.options.trace.name
    return f"{name} ({setup.trace.format}), models of {setup.workload.name}"


def setting_of(drawn: Drawn, *, simulated: bool = True) -> list[str]:
    """Sentences on the cluster and the load."""
    setup = drawn.setup
    nodes, first = len(setup.cluster.nodes), setup.cluster.nodes[0]
    where = f"{nodes:,} nodes of {first}"
    if simulated:
        where += (
            f", slots of {format_seconds(setup.slot_s)}, speeds {setup.speeds.name}, scaling {setup.options.scaling}"
        )
    lines = [where]
    if drawn.load is not None:
        lines.append(f"offered load at the jobs' requests: {_load(drawn.load)}")
    return lines


def _load(load: Load) -> str:
    return (
        f"{format_share(load.gpu_share)} of the GPUs, {format_share(load.cpu_share)} of the CPUs, "
        f"over {load.span_s / 3600:.1f} h of arrivals"
    )


def load_warning(load: Load) -> str | None:
    """A line where jobs ask for more than the cluster has while they arrive."""
    if load.share <= 1:
        return None
    return f"overload: {_load(load)}; queues grow until arrivals end (--load 90% stretches arrivals)"


def events_log(events: Sequence[Event], *, as_json: bool) -> str:
    """Arrivals, starts, changes, pauses and ends in order of time."""
    return _log([asdict(event) for event in events], Event.__dataclass_fields__, as_json)


def slots_log(slots: Sequence[SlotUse], *, as_json: bool) -> str:
    """Use of every slot that had jobs."""
    return _log([asdict(slot) for slot in slots], SlotUse.__dataclass_fields__, as_json)


def _log(rows: Sequence[dict[str, Any]], columns: Any, as_json: bool) -> str:
    if as_json:
        return json.dumps(rows, indent=1, allow_nan=False) + "\n"
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
