"""The shipped schemas of ``schedule live`` and ``schedule advise`` say what their result types hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_schema import schema_of

from graphcost.cli.main import main
from graphcost.live.jobs import LiveOptions
from graphcost.live.result import LiveOutcome, SlotRun
from graphcost.sim.best_tasks import TaskAdvice

FOLDER = Path(__file__).parents[2] / "graphcost" / "report"
HEAD = ("schema_version", "graphcost_version", "command")
SETTING = "workload trace cluster slot_s speeds notes scheduler seed".split()  # noqa: SIM905
"""As in ``schedule simulate``."""


def whole(command: str, names: list[str], more: dict[str, Any]) -> dict[str, Any]:
    """The schema of a command's JSON: ``names`` of ``schedule simulate``, and ``more``."""
    simulated = json.loads(files("graphcost.report").joinpath("schedule_simulate.schema.json").read_text("utf-8"))
    shared = {name: simulated["properties"][name] for name in (*HEAD, *names)}
    properties = {**shared, "command": {"const": command}, **more}
    return {
        "$schema": simulated["$schema"],
        "title": f"graphcost {command} --format json",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def live_schema() -> dict[str, Any]:
    job = schema_of(LiveOutcome)
    del job["properties"]["losses"]
    for name in ("first_loss", "last_loss"):
        job["properties"][name] = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    job["required"] = list(job["properties"])
    more = {
        "options": schema_of(LiveOptions),
        "finished": {"type": "integer"},
        "jobs": {"type": "array", "items": job},
        "slots": {"type": "array", "items": schema_of(SlotRun)},
    }
    return whole("schedule live", SETTING, more)


def advise_schema() -> dict[str, Any]:
    own = {"arch": {"enum": ["ps", "allreduce"]}, "nodes": {"type": "integer"}}
    return whole("schedule advise", [], {**own, **schema_of(TaskAdvice)["properties"]})


SCHEMAS = {"schedule_live": live_schema, "schedule_advise": advise_schema}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_shipped_schema_is_that_of_the_types(name: str, update_golden: bool) -> None:
    make: Callable[[], dict[str, Any]] = SCHEMAS[name]
    file = FOLDER / f"{name}.schema.json"
    text = json.dumps(make(), indent=1) + "\n"
    if update_golden:
        file.write_text(text, "utf-8")
    assert file.read_text("utf-8") == text
    jsonschema.Draft202012Validator.check_schema(make())


@pytest.mark.parametrize("arch", ["ps", "allreduce"])
def test_real_advice_obeys_its_schema(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--nodes", "1", "--max-workers", "3", "--max-ps", "2"]
    assert main(["schedule", "advise", "zoo:mlp", "--arch", arch, *few, "--format", "json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    schema = json.loads(files("graphcost.report").joinpath("schedule_advise.schema.json").read_text("utf-8"))
    jsonschema.validate(found, schema)
    assert [row["workers"] for row in found["by_workers"]] == [1, 2, 3] and found["arch"] == arch
    found["fastest"]["samples_per_ms"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema)
