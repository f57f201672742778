"""``--half-gradients``: half the bytes on the wire, two casts, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from one_product import MEM, UTILISATION, WEIGHT_BYTES, one_product, paper

from graphcost.analysis import analyze, analyze_with
from graphcost.errors import UsageError


def test_paper_by_hand(tmp_path: Path) -> None:
    """Traffic halves; the casts read and write 4 bytes of every value, twice."""
    source = str(one_product(tmp_path / "m.onnx"))
    whole = analyze_with(source, paper())
    half = analyze_with(source, replace(paper(), half_gradients=True))
    assert half.step.exposed_comm_s == pytest.approx(whole.step.exposed_comm_s / 2)
    assert half.step.memory_s - whole.step.memory_s == pytest.approx(4 * WEIGHT_BYTES / (UTILISATION * MEM))
    assert half.training.gradient_bytes == whole.training.gradient_bytes == WEIGHT_BYTES


def test_calibrated_sends_half_in_the_same_buckets() -> None:
    options = {"gpus": 16, "batch": 8, "cluster": "horovod-p100-25roce"}
    whole, half = analyze("zoo:vgg16", **options), analyze("zoo:vgg16", half_gradients=True, **options)
    assert half.communication[0].bytes == whole.communication[0].bytes / 2
    assert 0.5 <= half.communication[0].time_s / whole.communication[0].time_s < 0.51  # latencies stay
    assert "0.5 S on the wire" in half.communication[0].formula
    sends = [len(one.predicted.messages[0].sends) for one in (whole, half) if one.predicted]
    assert sends[0] == sends[1] > 1
    assert half.step.forward_s == whole.step.forward_s and half.step.backward_s == whole.step.backward_s
    assert half.step.update_s is not None and whole.step.update_s is not None
    assert half.step.update_s > whole.step.update_s


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"arch": "ps", "gpus": 8}, "--half-gradients goes with --arch allreduce, not ps"),
        ({"gpus": 8, "precision": "bf16"}, "--half-gradients: gradients of bf16 have 2 bytes already"),
    ],
)
def test_where_it_means_nothing_it_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        analyze("zoo:mlp", half_gradients=True, **options)  # type: ignore[arg-type]
