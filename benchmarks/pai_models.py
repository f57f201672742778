"""The six case studies of the Alibaba-PAI workload study: features from the graph beside its tables' figures.

``python -m benchmarks.pai_models``: sizes of weights, features of a step on one cNode, and the step under
``--profile paper`` with either. The tables' figures are recalled. Layers that the study does not tell were
chosen to meet sizes, FLOPs, input and traffic; memory traffic was fitted to nothing. Exit 1 where a ratio is
over 5 % off without a note that says why.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks._measure import heading, table, verdict
from graphcost.analysis import predict
from graphcost.engine.paper import PaperFeatures, PaperTimes, paper_times
from graphcost.features import JobFeatures, job_features
from graphcost.graph import build_graph, operators, totals
from graphcost.models_zoo.pai_study import CASES, CaseStudy
from graphcost.placing import AnalysisOptions, Choice, resolve
from graphcost.predict.paper import paper_features
from graphcost.sources import LoadOptions, load_model
from graphcost.training import plan_step

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

TOLERANCE = 0.05

NOTES: Mapping[tuple[str, str], str] = {
    ("pai-resnet50", "memory traffic"): "every operator apart; 28.6 GB with pointwise chains joined (compiled)",
    ("pai-nmt", "memory traffic"): "likely TF 1's small operators: norms, dropout, Adam are one kernel each here",
    ("pai-nmt", "input copy"): "12,288 int32 ids; the figure is fewer than one id a token",
    ("pai-bert", "memory traffic"): "likely as NMT: GELU, norms and Adam of TF 1 are dozens of operators",
    ("pai-speech", "memory traffic"): "cells count with the LSTMs' products here",
    ("pai-speech", "S_w dense"): "one GPU sends nothing; eight would send 3.5 W = 727 MB",
    ("pai-multi-interests", "memory traffic"): "unknown; ids are gathered and summed, two operators here",
    ("pai-gcn", "memory traffic"): "unknown; half of ours is the update of touched rows",
}
"""Of differences over the tolerance."""


@dataclass(frozen=True, slots=True)
class Row:
    """One feature of a model; ``study`` 0: the study has none."""

    model: str
    feature: str
    unit: float
    unit_name: str
    ours: float
    study: float

    @property
    def ratio(self) -> float | None:
        return self.ours / self.study if self.study else None

    @property
    def note(self) -> str:
        return NOTES.get((self.model, self.feature), "")

    @property
    def missed(self) -> bool:
        return self.ratio is not None and abs(self.ratio - 1) > TOLERANCE and not self.note

    def cells(self) -> list[str]:
        study = f"{self.study / self.unit:,.5g} {self.unit_name}" if self.study else "none"
        ratio = "" if self.ratio is None else f"{self.ratio:.3f}"
        ours = f"{self.ours / self.unit:,.5g} {self.unit_name}"
        return [self.model.removeprefix("pai-"), self.feature, ours, study, ratio, self.note]


def options_of(name: str, case: CaseStudy) -> AnalysisOptions:
    """The case's job under the study's framework; no contention for PCIe, as its case studies count."""
    return AnalysisOptions(
        arch=case.arch, gpus=case.gpus, cluster="pai-paper-base", profile="paper", optimizer=case.optimizer,
        input_sharing=1, load=LoadOptions(),
    )  # fmt: skip


def table_values(graph: OpGraph) -> int:
    """Values of the tables that anything looks rows up in."""
    tables = {
        param.name: param.numel
        for _, node, _ in operators(graph)
        for slot, param in node.params
        if node.op_type == "Gather" and slot == 0
    }
    return sum(tables.values())


@dataclass(frozen=True, slots=True)
class Compared:
    """A case from its graph: what is stored, a step's features, the step's times."""

    name: str
    case: CaseStudy
    dense_values: int
    table_values: int
    features: JobFeatures
    choice: Choice
    ours: PaperTimes
    step_s: float

    def times_of_the_study(self) -> PaperTimes:
        """The framework over the study's features; a job on one GPU sends nothing."""
        case = self.case
        features = PaperFeatures(case.input_bytes, case.flops, case.mem_bytes, case.weight_bytes)
        place = self.choice.placement
        return paper_times(features, place.cluster, self.choice.arch.paper_media(place))

    def rows(self) -> Iterator[Row]:
        """Sizes with optimizer slots, then features."""
        case, found, width = self.case, self.features, 4 * self.case.copies
        sparse_bytes = found.sparse_weight_bytes or 0.0
        for feature, unit, unit_name, ours, study in (
            ("dense weights", 1e6, "MB", width * self.dense_values, case.dense_bytes),
            ("embedding weights", 1e9, "GB", width * self.table_values, case.embedding_bytes),
            ("FLOPs", 1e9, "GFLOP", found.flops, case.flops),
            ("memory traffic", 1e9, "GB", found.mem_bytes, case.mem_bytes),
            ("input copy", 1e6, "MB", found.input_bytes, case.input_bytes),
            ("S_w dense", 1e6, "MB", found.dense_weight_bytes, 0.0 if sparse_bytes else case.weight_bytes),
            ("S_w sparse", 1e6, "MB", sparse_bytes, 0.0),
            ("S_w", 1e6, "MB", (found.dense_weight_bytes or 0.0) + sparse_bytes, case.weight_bytes),
        ):
            if ours or study:
                if feature == "S_w" and not sparse_bytes:
                    continue
                yield Row(self.name, feature, unit, unit_name, float(ours or 0.0), study)


def compared(name: str, case: CaseStudy) -> Compared:
    """Builds the graph and asks it everything."""
    options = options_of(name, case)
    choice = resolve(options)
    graph = build_graph(load_model(f"zoo:{name}", options.load))
    plan = plan_step(graph, choice.recipe)
    place = choice.placement
    in_tables = table_values(graph)
    return Compared(
        name=name,
        case=case,
        dense_values=totals(graph).params - in_tables,
        table_values=in_tables,
        features=job_features(plan, choice.arch, place),
        choice=choice,
        ours=paper_times(paper_features(plan, choice.arch, place), place.cluster, choice.arch.paper_media(place)),
        step_s=predict(plan, choice, options).step_s,
    )


def step_cells(one: Compared) -> list[str]:
    """Milliseconds by part from the graph's features, the same from the study's, ratio of the steps."""
    study = one.times_of_the_study()

    def parts(times: PaperTimes) -> str:
        found = (times.input_s, times.compute_s, times.memory_s, times.weight_s)
        return " + ".join(f"{part_s * 1e3:.1f}" for part_s in found)

    return [
        one.name.removeprefix("pai-"), one.case.arch, str(one.case.batch), f"{one.step_s * 1e3:.1f}",
        parts(one.ours), f"{study.step_s * 1e3:.1f}", parts(study), f"{one.step_s / study.step_s:.2f}",
    ]  # fmt: skip


def main() -> int:
    """Print both tables."""
    cases = [compared(name, case) for name, case in CASES.items()]
    rows = [row for one in cases for row in one.rows()]
    print(heading("python -m benchmarks.pai_models"))
    print(table(["model", "feature", "graph", "study (recalled)", "ratio", "note"], [row.cells() for row in rows]))
    print("\nStep under --profile paper, ms; parts: input + compute + memory + weights\n")
    columns = ["model", "arch", "batch", "graph", "parts", "study's features", "parts", "ratio"]
    print(table(columns, [step_cells(one) for one in cases]))
    print()
    return verdict([f"{row.model} {row.feature}: {row.ratio:.3f}, no note says why" for row in rows if row.missed])


if __name__ == "__main__":
    sys.exit(main())
