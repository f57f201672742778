"""The columns of a job table: what each must hold, in the words of its error messages."""

from __future__ import annotations

from collections.abc import Mapping

ID, ARCH = "job_id", "arch"

NUMBERS: Mapping[str, str] = {
    "cnodes": "the number of cNodes, a whole number from 1",
    "batch": "samples per cNode and step, a number over 0",
    "input_bytes": "bytes copied to the device per step and cNode, a number from 0",
    "flops": "FLOPs of compute-bound operators per step and cNode, a number from 0",
    "mem_bytes": "bytes that memory-bound operators touch per step and cNode, a number from 0",
    "dense_weight_bytes": "traffic of dense weights and gradients per step and cNode in bytes, a number from 0",
    "sparse_weight_bytes": "traffic of embedding rows per step and cNode in bytes, a number from 0",
}
REQUIRED = (ID, ARCH, *NUMBERS)

OPTIONAL_NUMBERS: Mapping[str, str] = {
    "gpu_hours": "GPU hours of the whole job, a number from 0",
    "dense_model_bytes": "bytes that dense weights, their gradients and optimizer state hold on a device, from 0",
    "sparse_model_bytes": "bytes of the embedding tables with their optimizer state, a number from 0",
}
NULLABLE = ("dense_model_bytes", "sparse_model_bytes")
"""May be left empty in a row: not known for that job."""

TEXTS = ("resource",)
"""Kept as they are."""

ALL_NUMBERS: Mapping[str, str] = {**NUMBERS, **OPTIONAL_NUMBERS}
MOST = 1e24
"""Larger values are taken for a mistake: no step moves or computes so much, and sums must stay finite."""
