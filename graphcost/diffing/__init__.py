"""What changed between two results: totals by metric, operators matched by structure."""

from graphcost.diffing.metrics import METRICS, Metric, Snapshot, snapshot_of
from graphcost.diffing.models import Delta, ModelDiff, deltas_between, diff_models, diff_sides, lone_side
from graphcost.diffing.operators import OperatorChange, OperatorChanges, match_operators
from graphcost.diffing.sides import Side, read_sides, side_of

__all__ = [
    "METRICS",
    "Delta",
    "Metric",
    "ModelDiff",
    "OperatorChange",
    "OperatorChanges",
    "Side",
    "Snapshot",
    "deltas_between",
    "diff_models",
    "diff_sides",
    "lone_side",
    "match_operators",
    "read_sides",
    "side_of",
    "snapshot_of",
]
