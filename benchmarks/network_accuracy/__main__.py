"""Communication against published step times: ``python -m benchmarks.network_accuracy FOLDER``.

``FOLDER`` holds the measured tables. The single-GPU step is the measured one, two thirds
of it backward, so that no error of computation hides one of communication; gradients are
those of the zoo's networks, or even layers of a stated size. Exit 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.network_accuracy.predict import predict
from benchmarks.network_accuracy.score import (
    Scored,
    Verdict,
    by_model,
    mean_of_models,
    median_error,
    percentile,
    pooled,
    verdict,
    winners,
)  # fmt: skip
from benchmarks.network_accuracy.tables import all_rows
from graphcost.report.tables import table_text

POSITIVE = ("pollux_traces_t4", "sia_traces_rtx_quadro: RTX 2080 Ti", "gavel", "hkbu AllReduce")
"""The tables in which steps wait for communication for more than half of the time."""

RIVALS = "hkbu AllReduce, other"
TARGETS = {"efficiency": 6.0, "share": 4.6, "recall": 0.85, "precision": 0.85, "outside": 0.95, "winner": 0.90}


def scored_rows(folder: Path) -> tuple[list[Scored], Counter[str]]:
    rows, skipped = all_rows(folder)
    scored = []
    for row in rows:
        predicted = predict(row.model, row.run, row.single_s)
        if predicted is None:
            skipped[f"parameters of {row.model} unknown"] += 1
        else:
            scored.append(Scored(row, predicted))
    return scored, skipped


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _line(name: str, rows: Sequence[Scored]) -> list[str]:
    efficiency = [one.efficiency_points for one in rows]
    waits = [one for one in rows if one.row.wait_s is not None]
    share = "-"
    if waits:
        middle = mean_of_models(waits, lambda group: median_error(one.share_points for one in group))
        share = f"{middle:.1f} / {percentile((one.share_points for one in waits), 0.9):.1f}"
    found = verdict(rows)
    middle = mean_of_models(rows, lambda group: median_error(one.efficiency_points for one in group))
    return [
        name, str(len(rows)), f"{middle:.1f} / {percentile(efficiency, 0.9):.1f}", f"{mean(efficiency):+.1f}", share,
        f"{found.right / found.rows:.3f}", _share(found.recall), _share(found.precision), _share(found.outside),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.network_accuracy", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", action="store_true", help="one line per table and model")
    options = parser.parse_args(argv)
    scored, skipped = scored_rows(options.folder)
    tables = list(dict.fromkeys(one.row.table for one in scored if one.row.table not in (RIVALS, "horovod PS")))
    lines = []
    for table in tables:
        mine = [one for one in scored if one.row.table == table]
        lines.append(_line(table, mine))
        if options.models:
            lines += [_line(f"  {model}", group) for model, group in by_model(mine).items()]
    columns = ["table", "rows", "efficiency med / p90", "bias", "share med / p90", "verdict", "recall", "precision"]
    print(table_text([*columns, "outside 40-60 %"], lines, right=range(1, 9), width=160))
    counted = [one for one in scored if one.row.table in tables]
    waits = [one for one in counted if one.row.wait_s is not None]
    positive = verdict([one for one in counted if one.row.table in POSITIVE])
    chosen = [winner for winner in winners(scored) if winner.differs]
    figures = {
        "efficiency": pooled(counted, lambda one: one.efficiency_points, 0.5),
        "share": pooled(waits, lambda one: one.share_points, 0.5),
        "recall": positive.recall or 0.0,
        "precision": positive.precision or 0.0,
        "outside": _outside(counted).outside or 0.0,
        "winner": sum(winner.right for winner in chosen) / len(chosen),
    }
    print(
        f"pooled, every table and model alike: efficiency {figures['efficiency']:.1f} points "
        f"(p90 {pooled(counted, lambda one: one.efficiency_points, 0.9):.1f}), share {figures['share']:.1f} points "
        f"(p90 {pooled(waits, lambda one: one.share_points, 0.9):.1f})"
    )
    print(f"over 50 %, {', '.join(POSITIVE)} pooled: recall {_share(positive.recall)}, "
          f"precision {_share(positive.precision)}")  # fmt: skip
    print(f"rows measured outside 40-60 %: {figures['outside']:.3f} right")
    print(f"AllReduce or PS, pairs that differ > 10 %: {sum(w.right for w in chosen)} of {len(chosen)} right")
    for winner in chosen:
        if not winner.right:
            print(f"  missed {winner.pair}: measured {winner.measured:.2f}, predicted {winner.predicted:.2f}")
    print("left out: " + ", ".join(f"{count} ({reason})" for reason, count in skipped.most_common()))
    low = {"efficiency", "share"}
    missed = [
        name for name, goal in TARGETS.items() if (figures[name] > goal) == (name in low) and figures[name] != goal
    ]
    print("targets missed: " + (", ".join(missed) or "none"))
    return 1 if missed else 0


def _outside(rows: Sequence[Scored]) -> Verdict:
    return verdict(rows)


if __name__ == "__main__":
    sys.exit(main())
