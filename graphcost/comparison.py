"""One model under several architectures and GPU counts: PAI's projection, for one graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphcost.analysis import analyze_graph
from graphcost.arch import ARCHITECTURES, PsStyle
from graphcost.errors import PlacementError, UsageError
from graphcost.graph import build_graph
from graphcost.placing import AnalysisOptions, resolve
from graphcost.result import Analysis
from graphcost.sources import load_model

_OTHER_PS = PsStyle.BYTEPS.value  # only parameter servers have a style; elsewhere the default stands


@dataclass(frozen=True, slots=True)
class Refusal:
    """An architecture that a placement cannot hold."""

    arch: str
    gpus: int
    reason: str


def _sensible(gpus: int) -> tuple[str, ...]:
    """Architectures worth a row: one GPU has nothing to reduce, several are not ``single``."""
    alone = {"single", "ps"}
    return tuple(name for name in ARCHITECTURES if (name in alone if gpus == 1 else name != "single"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results from fastest to slowest by samples per second, and what was refused."""

    name: str
    source: str
    ranked: tuple[Analysis, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...]


def compare_model(
    source: Any, options: AnalysisOptions, gpu_counts: Sequence[int], archs: Sequence[str] = ()
) -> Comparison:
    """Analyse ``source`` once per architecture and GPU count; the graph is loaded once.

    An architecture that a placement cannot hold is refused by name; where none is left,
    raises ``PlacementError``.
    """
    for name in archs:
        ARCHITECTURES.find(name)
    base = replace(options, arch="single", gpus=1, servers=None, ps=None, ps_style=_OTHER_PS, gather_rows=False)
    resolve(base)  # names and cluster are checked before the file is read
    graph = build_graph(load_model(source, options.load))
    results: list[Analysis] = []
    refused: list[Refusal] = []
    for gpus in gpu_counts:
        for name in archs or _sensible(gpus):
            tried = replace(
                options,
                arch=name,
                gpus=gpus,
                ps=options.ps if name == "ps" else None,
                ps_style=options.ps_style if name == "ps" else _OTHER_PS,
                gather_rows=options.gather_rows and name == "allreduce",
            )
            try:
                choice = resolve(tried)
            except (PlacementError, UsageError) as error:
                if not isinstance(error, PlacementError):
                    raise
                refused.append(Refusal(name, gpus, str(error)))
                continue
            results.append(analyze_graph(graph, tried, choice, command="compare"))
    if not results:
        raise PlacementError("; ".join(entry.reason for entry in refused))
    ranked = sorted(
        results, key=lambda result: (result.step.step_s / (result.placement.gpus or 1), result.placement.gpus)
    )
    model = graph.graph["model"]
    return Comparison(model.name, model.source, tuple(ranked), tuple(refused), ranked[0].model.notes)
