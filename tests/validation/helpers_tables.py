"""Small measured tables, written to a folder."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from graphcost.validation.tables import COLUMNS

PLAIN: Mapping[str, object] = {
    "source": "own", "model_id": "resnet50", "framework": "PyTorch", "phase": "train", "task_input": "224x224",
    "gpu": "V100-SXM2-16GB", "n_gpus": 1, "n_nodes": 1, "precision": "FP32", "batch_per_gpu": 32, "grad_accum": 1,
    "step_time_ms": 100.0, "arch": "single",
}  # fmt: skip


def write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """A CSV file of ``rows``, each over ``PLAIN``."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({**PLAIN, **row} for row in rows)
    return path
