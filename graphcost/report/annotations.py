"""Findings as GitHub workflow commands and as GitLab's code quality report.

Sources: GitHub Docs, "Workflow commands for GitHub Actions" (percent encoding of data and
properties as in actions/toolkit); GitLab Docs, "Code Quality", report format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from graphcost.report.issues import Judged

_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}
_GITLAB = {"error": "major", "warning": "minor", "note": "info"}


def github_text(models: Sequence[Judged]) -> str:
    """``::error file=model.py,line=41,title=...::message``, a line each; ignored findings are left out."""
    return "".join(line + "\n" for model in models for line in _commands(model))


def _commands(model: Judged) -> Iterator[str]:
    if model.error is not None:
        yield _command("error", model.path, model.line, f"graphcost: {model.name}", model.error)
    for issue in model.issues:
        if issue.ignored is None:
            title = f"graphcost {issue.rule}: {issue.model}"
            yield _command(_GITHUB[issue.level], issue.path, issue.line, title, issue.message)


def _command(kind: str, path: str, line: int | None, title: str, message: str) -> str:
    given = {"file": path, "line": str(line) if line else "", "title": title}
    properties = ",".join(f"{key}={_property(value)}" for key, value in given.items() if value)
    return f"::{kind} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def gitlab_text(models: Sequence[Judged]) -> str:
    """GitLab's JSON array; a finding without a file stands at the model's name."""
    entries = [
        {
            "description": f"{issue.model}: {issue.message}",
            "check_name": issue.rule,
            "fingerprint": issue.fingerprint,
            "severity": _GITLAB[issue.level],
            "location": {"path": issue.path or issue.model, "lines": {"begin": issue.line or 1}},
        }
        for model in models
        for issue in model.issues
        if issue.ignored is None
    ]
    return json.dumps(entries, indent=2) + "\n"
