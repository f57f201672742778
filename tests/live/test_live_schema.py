"""The shipped schema of ``schedule live`` says what its result types hold."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from test_schema import schema_of

from graphcost.live.jobs import LiveOptions
from graphcost.live.result import LiveOutcome, SlotRun

FILE = Path(__file__).parents[2] / "graphcost" / "report" / "schedule_live.schema.json"
NAMES = "workload trace cluster slot_s speeds scaling disturbance notes scheduler seed"
HEAD = ("schema_version", "graphcost_version", "command", *NAMES.split())
"""As in ``schedule simulate``."""


def live_schema() -> dict[str, Any]:
    simulated = json.loads(files("graphcost.report").joinpath("schedule_simulate.schema.json").read_text("utf-8"))
    job = schema_of(LiveOutcome)
    del job["properties"]["losses"]
    for name in ("first_loss", "last_loss"):
        job["properties"][name] = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    job["required"] = list(job["properties"])
    properties = {
        **{name: simulated["properties"][name] for name in HEAD},
        "command": {"const": "schedule live"},
        "options": schema_of(LiveOptions),
        "finished": {"type": "integer"},
        "jobs": {"type": "array", "items": job},
        "slots": {"type": "array", "items": schema_of(SlotRun)},
    }
    return {
        "$schema": simulated["$schema"],
        "title": "graphcost schedule live --format json",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def test_the_shipped_schema_is_that_of_the_types(update_golden: bool) -> None:
    text = json.dumps(live_schema(), indent=1) + "\n"
    if update_golden:
        FILE.write_text(text, "utf-8")
    assert FILE.read_text("utf-8") == text
