"""The JSON contract: the shipped schema says exactly what the result types hold, and real output obeys it."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers import RESNET50, VGG19

from graphcost.analysis import analyze
from graphcost.result import SCHEMA_VERSION, Analysis

OPTIONAL = ("ops", "symbolic", "max_batch")
"""Parts of an analysis that are written where somebody asked for them."""

UNWRITTEN = ("predicted", "details", "analysis")
"""Fields of results that hold objects for reports and are no part of the JSON."""

SCHEMA_FILE = Path(__file__).parents[1] / "graphcost" / "report" / "analysis.schema.json"


def schema_of(kind: Any) -> dict[str, Any]:
    """JSON Schema of a result type."""
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        properties = {
            field.name: schema_of(hints[field.name]) for field in fields(kind) if field.name not in UNWRITTEN
        }
        made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name in properties if (kind, name) not in {(Analysis, name) for name in OPTIONAL}]
        return {**made, "required": required, **({"description": kind.__doc__} if kind.__doc__ else {})}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    simple = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
    return {} if kind is Any else {"type": simple[kind]}


def whole_schema() -> dict[str, Any]:
    one = schema_of(Analysis)
    one["properties"] = {"schema_version": {"const": SCHEMA_VERSION}, **one["properties"]}
    one["required"] = ["schema_version", *one["required"]]
    several = {
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "results": {"type": "array", "items": {"$ref": "#/$defs/analysis"}},
        },
        "required": ["schema_version", "results"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "graphcost analyze --format json",
        "$defs": {"analysis": one},
        "anyOf": [{"$ref": "#/$defs/analysis"}, several],
    }


def test_the_shipped_schema_is_that_of_the_types(update_golden: bool) -> None:
    text = json.dumps(whole_schema(), indent=1) + "\n"
    if update_golden:
        SCHEMA_FILE.write_text(text, "utf-8")
    assert files("graphcost.report").joinpath("analysis.schema.json").read_text("utf-8") == text


@pytest.mark.parametrize("per_op", [False, True])
def test_real_output_obeys_the_schema(per_op: bool) -> None:
    schema = json.loads(SCHEMA_FILE.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    results = [
        analyze(str(RESNET50), gpus=8),
        analyze(str(VGG19), gpus=16, batch=32, cluster="aws-p3.16xlarge", profile="paper"),
        analyze(str(VGG19), optimizer="none"),
    ]
    documents = [json.loads(found.to_json(per_op=per_op)) for found in results]
    several = {"schema_version": SCHEMA_VERSION, "results": documents}
    for document in (*documents, several):
        jsonschema.validate(document, schema)
    documents[0]["step"]["step_ms"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(documents[0], schema)


def test_contract_keys() -> None:
    """Keys that users and their scripts rely on."""
    data = analyze(str(RESNET50), gpus=8).to_dict(per_op=True)
    contract = {
        "model": "source name format inputs bindings batch_source notes",
        "graph": "ops macs matmul_flops elementwise_flops params param_bytes buffers buffer_bytes coverage",
        "training": "optimizer precision forward_flops forward_matmul_flops backward_flops backward_matmul_flops "
        "update_flops gradient_bytes sparse_gradient_bytes read_bytes write_bytes memory",
        "placement": "arch gpus servers ps cluster device batch_per_gpu global_batch profile execution overlap",
        "step": "step_s step_low_s step_high_s input_s compute_s memory_s host_s comm_s exposed_comm_s comm_share "
        "comm_share_low comm_share_high bound verdict flagged samples_per_s scaling_efficiency",
    }
    for part, keys in contract.items():
        assert set(keys.split()) <= set(data[part])
    memory = "weights_bytes gradients_bytes optimizer_bytes activations_bytes buffers_bytes peak_bytes fits"
    assert set(data["training"]["memory"]) >= set(memory.split())
    assert set(data["graph"]["coverage"]) >= {"counted", "free", "unknown"}
    message = {"what", "link", "kind", "bytes", "time_s", "exposed_s", "formula", "source"}
    assert set(data["communication"][0]) == message
    assert {"id", "name", "op_type", "module", "origin", "time_s", "bound", "efficiency", "efficiency_source"} <= set(
        data["ops"][0]
    )
    assert data["schema_version"] == 1 and data["command"] == "analyze"
