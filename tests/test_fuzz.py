"""Damaged and hostile model files end in a documented exit code: never a traceback, a hang or a crash."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks._hostile import HOSTILE
from benchmarks._measure import MB
from benchmarks._mutate import mutant
from benchmarks._seeds import BUILT, seeds
from benchmarks.fuzz import ALLOWED, LIMIT_S, Outcome, Pool, report
from graphcost.cli.main import main

COUNT, SEED = 300, 1


@pytest.mark.parametrize("make", BUILT, ids=lambda make: make.__name__)
def test_the_models_to_damage_are_whole(make: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "whole.onnx"
    file.write_bytes(make())  # type: ignore[operator]
    assert main(["count", str(file)]) == 0, capsys.readouterr().err


def test_damage_is_deterministic_and_varied() -> None:
    models = seeds()
    first = [mutant(SEED, index, models) for index in range(80)]
    assert first == [mutant(SEED, index, models) for index in range(80)]
    assert first != [mutant(SEED + 1, index, models) for index in range(80)]
    assert len({content for _, content in first}) > 70
    assert len(HOSTILE) >= 6


@pytest.mark.slow
def test_damaged_files_end_in_a_documented_exit_code(tmp_path: Path) -> None:
    pool = Pool(2, SEED, (), tmp_path)
    try:
        outcomes = list(pool.outcomes(range(COUNT)))
    finally:
        pool.close()
    failures = [outcome for outcome in outcomes if outcome.failure]
    assert not failures, report(failures)
    assert len(outcomes) == COUNT
    codes = Counter(outcome.code for outcome in outcomes)
    assert {0, 2, 3} <= set(codes), f"the damage reaches too little: {codes}"


@pytest.mark.parametrize(
    ("outcome", "failure"),
    [
        (Outcome(0, 3, 0.1, 1, ""), ""),
        (Outcome(0, 70, 0.1, 1, ""), "exit 70"),
        (Outcome(0, "hang", 22.0, 0, ""), "hang"),
        (Outcome(0, "crash", 0.1, 0, ""), "crash"),
        (Outcome(0, 3, 0.1, 1, "", "Traceback (most recent call last)"), "traceback"),
        (Outcome(0, 0, LIMIT_S + 1, 1, ""), "too slow"),
        (Outcome(0, 0, 0.1, int(1001 * MB), ""), "too much memory"),
    ],
)
def test_what_counts_as_a_failure(outcome: Outcome, failure: str) -> None:
    assert outcome.failure == failure
    assert frozenset({0, 1, 2, 3, 4}) == ALLOWED
