"""SARIF 2.1.0 for code scanning. Source: OASIS standard, Static Analysis Results Interchange Format 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from graphcost._version import __version__
from graphcost.project.keys import RULES
from graphcost.report.issues import Issue, Judged

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_DEFAULT_LEVELS = {"does-not-fit": "warning", "unknown-operator": "warning", "inference-graph": "note"}


def sarif_text(models: Sequence[Judged]) -> str:
    """One run with every finding; what could not be judged is a notification of the run."""
    rules = {
        **RULES,
        **{issue.rule: issue.rule for model in models for issue in model.issues if issue.rule not in RULES},
    }
    indices = {rule: index for index, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "graphcost",
                "semanticVersion": __version__,
                "rules": [
                    {
                        "id": rule,
                        "shortDescription": {"text": text},
                        "defaultConfiguration": {"level": _DEFAULT_LEVELS.get(rule, "error")},
                    }
                    for rule, text in rules.items()
                ],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not any(model.error for model in models),
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": f"{model.name}: {model.error}"},
                     "locations": _locations(model.path, model.line, "")}
                    for model in models
                    if model.error
                ],
            }
        ],
        "results": [_result(issue, indices) for model in models for issue in model.issues],
    }  # fmt: skip
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(issue: Issue, indices: dict[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "ruleId": issue.rule,
        "ruleIndex": indices[issue.rule],
        "level": issue.level,
        "message": {"text": f"{issue.model}: {issue.message}"},
        "locations": _locations(issue.path, issue.line, issue.operator),
        "partialFingerprints": {"graphcost/v1": issue.fingerprint},
    }
    if issue.ignored is not None:
        made["suppressions"] = [{"kind": "external", "justification": issue.ignored}]
    return made


def _locations(path: str, line: int | None, operator: str) -> list[dict[str, Any]]:
    """One location; a model's file, which has no lines, is shown at its first."""
    place: dict[str, Any] = {}
    if path:
        place["physicalLocation"] = {"artifactLocation": _artifact(path), "region": {"startLine": line or 1}}
    if operator:
        place["logicalLocations"] = [{"fullyQualifiedName": operator, "kind": "function"}]
    return [place] if place else []


def _artifact(path: str) -> dict[str, str]:
    if PurePosixPath(path).is_absolute():
        return {"uri": "file://" + quote(path)}
    return {"uri": quote(path), "uriBaseId": "%SRCROOT%"}
