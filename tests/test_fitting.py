"""The largest batch that fits: the search against brute force, the answer against the memory it claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.errors import UsageError
from graphcost.fitting import last_not_above_zero


@given(
    lines=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 40)), min_size=1, max_size=4),
    room=st.integers(0, 3000),
    limit=st.integers(2, 400),
)
def test_search_finds_what_a_walk_finds(lines: list[tuple[int, int]], room: int, limit: int) -> None:
    """A peak is a maximum of lines: fixed part + part per sample."""

    def excess(n: int) -> int:
        return max(fixed + n * each for fixed, each in lines) - room

    walked = max((n for n in range(1, limit + 1) if excess(n) <= 0), default=0)
    assert last_not_above_zero(excess, limit) == walked


def test_a_straight_line_takes_five_calls() -> None:
    calls = []

    def excess(n: int) -> int:
        calls.append(n)
        return 310_000 + 81_900 * n - 80_000_000

    assert last_not_above_zero(excess, 1 << 24) == (80_000_000 - 310_000) // 81_900
    assert len(calls) <= 5, calls


def test_steps_do_not_stall_the_search() -> None:
    """Memory that jumps every 1 000 samples: neither line nor neighbour help, the halving does."""
    calls = []

    def excess(n: int) -> int:
        calls.append(n)
        return n // 1000 - 777

    assert last_not_above_zero(excess, 1 << 24) == 777_999
    assert len(calls) < 90


@pytest.mark.parametrize("recompute", [False, True])
def test_the_batch_fits_and_the_next_does_not(recompute: bool) -> None:
    options = {"device": "v100-sxm2-16", "recompute": recompute}
    largest = analyze("zoo:bert-base", max_batch=True, **options).max_batch
    assert largest is not None
    assert analyze("zoo:bert-base", batch=largest, **options).training.memory.fits
    assert not analyze("zoo:bert-base", batch=largest + 1, **options).training.memory.fits


def test_recomputation_makes_room() -> None:
    plain, again = (
        analyze("zoo:bert-base", device="v100-sxm2-16", max_batch=True, recompute=recompute).max_batch
        for recompute in (False, True)
    )
    assert plain is not None and again is not None and again > plain


def test_nothing_fits_is_zero() -> None:
    assert analyze("zoo:resnet50", dims={"image": 8192}, device="v100-sxm2-16", max_batch=True).max_batch == 0


def test_a_graph_without_batch_is_refused(tmp_path) -> None:
    import onnx
    from onnx import TensorProto, helper

    spec = helper.make_tensor_value_info("x", TensorProto.FLOAT, [])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [spec], [out])
    path = tmp_path / "scalar.onnx"
    onnx.save(helper.make_model(graph), path)
    with pytest.raises(UsageError, match="batch"):
        analyze(str(path), max_batch=True)
