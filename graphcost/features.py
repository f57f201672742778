"""What a job table holds of a job: its step's features on one cNode, from a model's graph.

The mapping is the ``paper`` profile's (``predict.paper``): FLOPs of contractions, bytes of
all other operators, traffic S_w as the architecture charges it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from graphcost.arch import Architecture, PaperTraffic, Placement
from graphcost.graph import build_graph
from graphcost.placing import AnalysisOptions, resolve
from graphcost.predict.paper import paper_features
from graphcost.sources import load_model
from graphcost.training import StepPlan, plan_step


@dataclass(frozen=True, slots=True)
class JobFeatures:
    """A job per step and cNode, under the names of a job table; None: not known.

    ``dense_weight_bytes`` and ``sparse_weight_bytes`` are traffic (S_w), ``dense_model_bytes`` and
    ``sparse_model_bytes`` what is stored: dense weights with gradients and optimizer state, embedding
    tables with optimizer state. Table V of the PAI study has the first five of these.
    """

    arch: str
    cnodes: int | None
    batch: float | None
    input_bytes: float | None
    flops: float | None
    mem_bytes: float | None
    dense_weight_bytes: float | None
    sparse_weight_bytes: float | None
    dense_model_bytes: float | None = None
    sparse_model_bytes: float | None = None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Columns without a value, those aside that a job table may leave empty."""
        optional = ("dense_model_bytes", "sparse_model_bytes")
        return tuple(f.name for f in fields(self) if f.name not in optional and getattr(self, f.name) is None)


def job_features(plan: StepPlan, arch: Architecture, placement: Placement) -> JobFeatures:
    """The features of ``plan`` trained as ``arch`` on ``placement``."""
    found = paper_features(plan, arch, placement)
    dense_bytes, sparse_bytes = split_traffic(arch.paper_traffic(plan, placement))
    dense_model_bytes, sparse_model_bytes = _stored_bytes(plan)
    return JobFeatures(
        arch=arch.name,
        cnodes=placement.gpus,
        batch=plan.batch,
        input_bytes=found.input_bytes,
        flops=found.flops,
        mem_bytes=found.mem_bytes,
        dense_weight_bytes=dense_bytes,
        sparse_weight_bytes=sparse_bytes,
        dense_model_bytes=dense_model_bytes,
        sparse_model_bytes=sparse_model_bytes,
    )


def features_of(source: object, options: AnalysisOptions) -> JobFeatures:
    """Loads ``source`` and plans its step; raises the errors of :mod:`graphcost.errors`.

    >>> row = features_of("zoo:mlp", AnalysisOptions(gpus=8, cluster="pai-paper-base"))
    >>> row.arch, row.cnodes, row.dense_weight_bytes == 4 * 7 / 8 * 4 * 669_706
    ('allreduce', 8, True)
    """
    choice = resolve(options)
    plan = plan_step(build_graph(load_model(source, options.load)), choice.recipe)
    return job_features(plan, choice.arch, choice.placement)


def split_traffic(parts: Iterable[PaperTraffic]) -> tuple[float, float]:
    """S_w of dense weights and of embedding rows, in bytes."""
    sums = {False: 0.0, True: 0.0}
    for part in parts:
        sums[part.rows] += part.weight_bytes
    return sums[False], sums[True]


def _stored_bytes(plan: StepPlan) -> tuple[float | None, float | None]:
    """Dense weights with gradients and state, and tables that are only looked up with state.

    None where a factored optimizer keeps sums of a table: their size depends on its shape.
    """
    tables = [gradient for gradient in plan.gradients if gradient.rows_bytes is not None]
    if tables and plan.optimizer.factored:
        return None, None
    table_bytes = sum(table.bytes for table in tables) * (1 + plan.optimizer.state_values)
    held = plan.memory.weights_bytes + plan.memory.gradients_bytes + plan.memory.optimizer_bytes
    return held - table_bytes - sum(table.sent_bytes for table in tables), table_bytes
