"""The command line's options of the network, and what they change in the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import RESNET50

from graphcost.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, object], str]:
    code = main([str(argument) for argument in ("analyze", RESNET50, *arguments, "--format", "json", "--quiet")])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def messages(data: dict[str, object]) -> dict[str, dict[str, object]]:
    found = data["communication"]
    assert isinstance(found, list)
    return {message["what"]: message for message in found}


def test_a_style_of_parameter_servers_is_a_formula_in_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--arch", "ps", "--gpus", "16", "--cluster", "aws-p3.16xlarge", "--exit-zero")
    _, byteps, _ = run(capsys, *place)
    _, grpc, _ = run(capsys, *place, "--ps-style", "grpc")
    assert "2 m S/(P B)" in str(messages(byteps)["push and pull"]["formula"])
    assert {"pull weights", "push gradients"} <= set(messages(grpc))
    assert "gRPC" in str(messages(grpc)["push gradients"]["source"])


def test_a_straggler_costs_what_its_spread_says(capsys: pytest.CaptureFixture[str]) -> None:
    _, data, _ = run(capsys, "--gpus", "8", "--straggler", "5%")
    assert float(str(messages(data)["slowest GPU"]["exposed_s"])) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpus", "8", "--ps-style", "grpc"), "--ps-style goes with --arch ps"),
        (("--gpus", "8", "--arch", "ps", "--ps-style", "gprc"), "did you mean 'grpc'"),
        (("--gpus", "8", "--arch", "ps", "--gather-rows"), "--gather-rows goes with --arch allreduce"),
        (("--gpus", "8", "--straggler", "150%"), "between 0% and 100%"),
    ],
)
def test_wrong_options_exit_2_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2 and message in err and "Traceback" not in err
