"""The configuration's keys, in one table that the reader and the JSON Schema are both made from.

Analysis options come from the command line's own declarations (``Vocabulary``), so that an
option of ``graphcost analyze`` is a key without a second entry. What only a project has is
listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from graphcost.placing import AnalysisOptions
from graphcost.project.budgets import BUDGETS

Scalar = (str, int, float)


class Kind(Enum):
    """What a key's value may be: words for a message, and its JSON Schema."""

    TEXT = ("a string", {"type": "string"})
    INTEGER = ("a whole number", {"type": "integer"})
    NUMBER = ("a number", {"type": "number"})
    FLAG = ("true or false", {"type": "boolean"})
    QUANTITY = ('a string with a unit, e.g. "25Gb/s"', {"type": ["string", "number"]})
    TEXTS = ("a string or a list of strings", {"type": ["string", "array"], "items": {"type": "string"}})
    PAIRS = (
        "a table of NAME = value, or a list of strings NAME=value",
        {"type": ["object", "string", "array"], "items": {"type": "string"},
         "additionalProperties": {"type": ["string", "number", "boolean", "array"]}},
    )  # fmt: skip
    LIMIT = (
        'a limit ("120ms"), a growth ("+5%"), a list of them, or a table { warn = ..., fail = ... }',
        {"anyOf": [
            {"$ref": "#/$defs/limits"},
            {"type": "object", "additionalProperties": False,
             "properties": {"warn": {"$ref": "#/$defs/limits"}, "fail": {"$ref": "#/$defs/limits"}}},
        ]},
    )  # fmt: skip
    DATE = ("a date (2027-01-31)", {"type": "string", "format": "date"})
    TABLE = ("a table", {"type": "object"})
    TABLES = ("an array of tables", {"type": "array"})

    @property
    def words(self) -> str:
        """For an error message."""
        return str(self.value[0])

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the value."""
        return dict(self.value[1])


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``option`` is the command line's name where it has one; ``choices`` where only these are meant."""

    name: str
    kind: Kind
    doc: str
    option: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The analysis options as the command line knows them.

    ``values_of`` parses a command line's words into option values (raising ``UsageError``),
    ``options_of`` makes ``AnalysisOptions`` of these.
    """

    keys: tuple[Key, ...]
    values_of: Callable[[Sequence[str]], Mapping[str, Any]]
    options_of: Callable[[Mapping[str, Any]], AnalysisOptions]


LEVELS: Mapping[str, str] = MappingProxyType({"fail": "error", "warn": "warning", "pass": "note"})
"""Word of the configuration -> level of a finding."""

RULES: Mapping[str, str] = MappingProxyType({
    "communication-share": "Communication takes more of the step than its limit.",
    "budget": "A number of the model is over its budget.",
    "regression": "A number of the model has grown by more than it may.",
    "does-not-fit": "The step needs more memory than the device has.",
    "unknown-operator": "An operator has no rule and is in no sum.",
    "no-curve": "A measured device has no curve for a class of operators, and another's stands in.",
    "staleness": "Workers without a barrier: how many updates of others a gradient is old; its cost is not modelled.",
    "division": "What dividing the model among GPUs leaves whole, or cannot charge.",
    "inference-graph": "The model is an export for inference; what that leaves out of training is said.",
})  # fmt: skip
"""Rules of findings, and what each means."""

BUDGET_KEYS: tuple[Key, ...] = tuple(Key(name, Kind.LIMIT, budget.doc) for name, budget in BUDGETS.items())

MODEL_KEYS: tuple[Key, ...] = (
    Key(
        "source", Kind.TEXT, "The model, as `graphcost analyze` takes it; a folder or a pattern stands for its files."
    ),
    Key("name", Kind.TEXT, "What reports and the baseline call it; its source unless given."),
)

IGNORE_KEYS: tuple[Key, ...] = (
    Key("rule", Kind.TEXT, "Rule of the findings that are ignored.", choices=tuple(RULES)),
    Key("model", Kind.TEXT, "Shell pattern of model names; all unless given."),
    Key(
        "where", Kind.TEXT, "Shell pattern of what a finding is about: a budget's key, an operator; all unless given."
    ),
    Key("reason", Kind.TEXT, "Why. Required."),
    Key("expires", Kind.DATE, "Last day on which the findings are ignored; for ever unless given."),
)

PROJECT_KEYS: tuple[Key, ...] = (
    Key("baseline", Kind.TEXT, "File of the numbers that growth is measured against, beside the configuration."),
    Key("workers", Kind.INTEGER, "Models analysed at once."),
    Key("levels", Kind.TABLE, "Rule -> fail, warn or pass."),
    Key("ignore", Kind.TABLES, "Findings that are known and accepted."),
    Key("models", Kind.TABLES, "The models, each with keys of its own that go before the project's."),
)
