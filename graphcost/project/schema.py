"""JSON Schema of the configuration, for editors; made from the table that the reader walks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphcost.project.keys import (
    BUDGET_KEYS,
    IGNORE_KEYS,
    LEVELS,
    MODEL_KEYS,
    PROJECT_KEYS,
    RULES,
    Key,
    Kind,
    Vocabulary,
)


def config_schema(vocabulary: Vocabulary) -> dict[str, Any]:
    """The schema of ``graphcost.toml``, and of ``[tool.graphcost]``."""
    shared = (*vocabulary.keys, *BUDGET_KEYS)
    limit = {"type": ["string", "number"]}
    whole = _object((*shared, *PROJECT_KEYS))
    whole["properties"]["levels"] = {
        **whole["properties"]["levels"],
        **_object([Key(rule, Kind.TEXT, doc, choices=tuple(LEVELS)) for rule, doc in RULES.items()]),
    }
    whole["properties"]["ignore"]["items"] = _object(IGNORE_KEYS, required=("rule", "reason"))
    whole["properties"]["models"]["items"] = _object((*MODEL_KEYS, *shared), required=("source",))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",  # what editors' TOML plugins know
        "title": "graphcost.toml",
        "$defs": {"limits": {"anyOf": [limit, {"type": "array", "items": limit, "minItems": 1}]}},
        **whole,
        "required": ["models"],
    }


def _object(keys: Iterable[Key], required: Iterable[str] = ()) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _value(key) for key in keys},
    }
    return {**made, "required": list(required)} if required else made


def _value(key: Key) -> dict[str, Any]:
    made = {"description": key.doc, **key.kind.schema}
    return {**made, "enum": list(key.choices)} if key.choices else made
