"""A batch of the whole job: dealt out over replicas and micro-batches, refused by name where it cannot be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.cli.main import main
from graphcost.errors import UsageError


@pytest.mark.parametrize(
    ("options", "per_gpu"),
    [
        ({"gpus": 8}, 64 // 8),
        ({"gpus": 8, "accumulate": 4}, 64 // (8 * 4)),
        ({"arch": "tp=2,pp=2,dp=2"}, 64 // (2 * 4)),  # two replicas of four micro-batches, one for each of their GPUs
        ({"arch": "tp=2,pp=2,dp=2,mb=8"}, 64 // (2 * 8)),
        ({"arch": "single"}, 64),
    ],
)
def test_samples_of_a_gpu(options: dict[str, object], per_gpu: int) -> None:
    found = analyze("zoo:gpt2", global_batch=64, precision="bf16", **options)
    assert (found.placement.batch_per_gpu, found.placement.global_batch) == (per_gpu, 64)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 16), st.integers(1, 4), st.integers(-3, 200))
def test_it_is_that_batch_or_refused(gpus: int, accumulate: int, samples: int) -> None:
    try:
        found = analyze("zoo:mlp", gpus=gpus, accumulate=accumulate, global_batch=samples)
    except UsageError as error:
        assert samples < 1 or samples % (gpus * accumulate)
        assert f"--global-batch {samples}" in str(error)
    else:
        assert found.placement.global_batch == samples


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("analyze", "--gpus", "8", "--global-batch", "100"),
         "8 x 1 (replicas, micro-batches) of --arch allreduce do not divide it; 96 or 104 would"),
        (("analyze", "--gpus", "8", "--global-batch", "4"), "do not divide it; 8 would"),
        (("analyze", "--gpus", "8", "--global-batch", "64", "--batch", "8"), "give one"),
        (("compare", "--gpus", "3,8", "--global-batch", "64"), "3 x 1 (replicas, micro-batches)"),
        (("compare", "--gpus", "8", "--global-batch", "64", "--arch", "tp=2,pp=2,mb=8"), "leave out mb"),
        (("analyze", "--gpus", "8", "--master-weights"), "weights of fp32 are their own masters"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *rest = words
    assert main([command, "zoo:gpt2", *rest]) == 2
    said = capsys.readouterr().err
    assert says in said and said.strip().count("\n") <= 1 and "Traceback" not in said


def test_compare_gives_every_placement_the_same_samples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "zoo:mlp", "--gpus", "2,8", "--global-batch", "64", "--quiet", "--format", "json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert {result["placement"]["global_batch"] for result in results} == {64}
    assert {result["placement"]["gpus"] for result in results} == {2, 8}


def test_a_search_keeps_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "zoo:gpt2", "--best", "--gpus", "4", "--global-batch", "32", "--quiet", "--format", "json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["best"][0]["global_batch"] == 32
