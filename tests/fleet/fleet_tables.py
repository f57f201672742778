"""Small job tables for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pl = pytest.importorskip("polars", reason="the extra 'fleet' is not installed")

COLUMNS = (
    "job_id", "arch", "cnodes", "batch", "input_bytes", "flops", "mem_bytes", "dense_weight_bytes",
    "sparse_weight_bytes",
)  # fmt: skip

# The study's case studies (recalled, high confidence), with the architecture each is told for.
CASES = [
    ("resnet50", "allreduce-local", 8, 64, 38e6, 1.56e12, 31.9e9, 357e6, 0),
    ("nmt", "allreduce", 8, 6144, 22e3, 2.5e12, 101.6e9, 1.33e9, 0),
    ("bert", "AllReduce", 8, 12, 46e3, 2.1e12, 107.3e9, 1.5e9, 0),
    ("speech", "1w1g", 1, 32, 804e6, 7.9e12, 20.4e9, 728e6, 0),
    ("multi-interests", "PS/Worker", 8, 2048, 261e6, 105.8e9, 100.4e9, 1e6, 121e6),
    ("gcn", "pearl", 8, 512, 1.2e6, 330.7e9, 25.79e9, 0.5e9, 2.5e9),
    ("gcn-what-if", "ps", 8, 512, 1.2e6, 330.7e9, 25.79e9, 0.5e9, 2.5e9),
]


def frame(rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS) -> Any:
    return pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows], infer_schema_length=None)


def write(path: Path, rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS) -> str:
    """A CSV or Parquet file by its suffix."""
    made = frame(rows, columns)
    if path.suffix == ".parquet":
        made.write_parquet(path)
    else:
        made.write_csv(path)
    return str(path)


def csv(path: Path, *lines: str, header: str = ",".join(COLUMNS)) -> Path:
    path.write_text("\n".join((header, *lines)) + "\n", "utf-8")
    return path
