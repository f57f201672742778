"""Graphs of timm models, traced once and kept on disk, at any batch.

How one trace serves every batch: ``graphcost/validation/traces.py``.

``python -m benchmarks.fit graphs TABLE ...`` traces every model of timm's result tables;
what is there already is kept, failures are listed by name in ``failures.json``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcost.frontends.options import LoadOptions
from graphcost.ir import Model
from graphcost.sources import load_model
from graphcost.validation.traces import TRACE_BATCH, at_batch, read_trace, store, trace_file

MODEL_TIMEOUT_S = 120


def cache_folder() -> Path:
    """``$GRAPHCOST_CACHE``, else ``~/.cache/graphcost``."""
    return Path(os.environ.get("GRAPHCOST_CACHE", Path.home() / ".cache" / "graphcost"))


def graph_file(name: str, image: int) -> Path:
    """Where the trace of ``timm:name`` at ``image`` pixels lies."""
    return trace_file(f"timm:{name}", {"image": image}, cache_folder())


def trace(name: str, image: int) -> Model:
    """``timm:name`` through the torch frontend at the trace's batch. Needs timm and torch."""
    return load_model(f"timm:{name}", LoadOptions(batch=TRACE_BATCH, dims={"image": image}))


def load(name: str, image: int, batch: int) -> Model | None:
    """The traced model at ``batch``, or None where there is no trace."""
    model = read_trace(graph_file(name, image))
    return None if model is None else at_batch(model, batch)


def wanted(tables: list[Path]) -> list[tuple[str, int]]:
    """(name without its pre-training tag, image size) of every row, in the tables' order, each once."""
    found: dict[tuple[str, int], None] = {}
    for table in tables:
        with table.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                size = row.get("train_img_size") or row["infer_img_size"]
                found[row["model"].partition(".")[0], int(size)] = None
    return list(found)


class _TooSlowError(Exception):
    """A trace took longer than its limit."""


def _stop(*_: Any) -> None:
    raise _TooSlowError(f"no trace within {MODEL_TIMEOUT_S} s")


def trace_all(models: list[tuple[str, int]]) -> dict[str, str]:
    """Trace what is missing; returns the failures: ``name@size`` -> why."""
    from graphcost.frontends.torch.libraries import import_timm

    import_timm()
    record = cache_folder() / "timm" / "failures.json"
    failures: dict[str, str] = json.loads(record.read_text("utf-8")) if record.exists() else {}
    trying = record.with_name("trying")
    if trying.exists():  # the process before this one died here
        failures[trying.read_text("utf-8")] = "the process died"
        record.write_text(json.dumps(failures, indent=1), "utf-8")
    signal.signal(signal.SIGALRM, _stop)
    for position, (name, image) in enumerate(models):
        key, path = f"{name}@{image}", graph_file(name, image)
        if path.exists() or key in failures:
            continue
        begun = time.perf_counter()
        trying.parent.mkdir(parents=True, exist_ok=True)
        trying.write_text(key, "utf-8")
        signal.alarm(MODEL_TIMEOUT_S)
        try:
            model = trace(name, image)
            signal.alarm(0)
            store(model, path)
            said = f"{len(model.nodes)} operators"
        except Exception as error:  # tracing raises anything; every failure is named
            signal.alarm(0)
            said = failures[key] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            record.write_text(json.dumps(failures, indent=1), "utf-8")
        trying.unlink()
        seconds = time.perf_counter() - begun
        print(f"{position + 1}/{len(models)} {key} {seconds:.1f} s: {said}", file=sys.stderr, flush=True)
    return failures


def main(argv: Sequence[str]) -> int:
    """Trace the models of the tables; 0 also where some fail, which is told."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit graphs", description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path, metavar="TABLE")
    models = wanted(parser.parse_args(argv).tables)
    failures = trace_all(models)
    have = sum(graph_file(*one).exists() for one in models)
    print(f"{have} of {len(models)} models traced, {len(failures)} failures")
    return 0
