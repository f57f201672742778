"""Findings with places: what the formats of code scanners, test reports and annotations are made of.

A finding's place is the user's own Python line where the operator it is about carries one
(torch models), else the model's file, else the line of the configuration that names the model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from graphcost.project.checking import CheckResult
from graphcost.project.judging import ALWAYS_JUDGED, CheckFinding, ModelCheck, Status
from graphcost.result import Analysis, Finding, OpInfo

_AT_LINE = re.compile(r' at (?P<file>.+):(?P<line>\d+)$|^File "(?P<file2>.+)", line (?P<line2>\d+)')


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding. ``path`` is relative to the working folder where it lies below it; '' where there is no file.

    ``fingerprint`` stays the same from run to run, whatever the numbers: rule, model, what it is about.
    """

    rule: str
    level: str
    message: str
    model: str
    about: str
    path: str
    line: int | None
    operator: str
    fingerprint: str
    ignored: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """One model: what was judged, what was found, and the error that kept it from being judged."""

    name: str
    path: str
    line: int | None
    judged: tuple[str, ...]
    issues: tuple[Issue, ...]
    error: str | None
    exit_code: int


def judged_analyses(results: Sequence[Analysis]) -> list[Judged]:
    """Analyses outside a project."""
    found = []
    for result in results:
        path = _file_of(result.model.source, Path())
        findings = [CheckFinding(one.rule, one.level, one.message, one.where) for one in result.findings]
        issues = tuple(_issue(one, result.model.name, result, path, None) for one in findings)
        found.append(Judged(result.model.name, path, None, ALWAYS_JUDGED, issues, None, 0))
    return found


def judged_check(check: CheckResult) -> list[Judged]:
    """The models of a check; those that the project no longer names are not judged."""
    return [_judged(model, Path(check.config)) for model in check.models if model.change != "removed"]


def _judged(model: ModelCheck, config: Path) -> Judged:
    path, line = _file_of(model.source, config.parent), None
    if not path:
        path, line = _relative(config), model.line
    issues = tuple(_issue(one, model.name, model.analysis, path, line) for one in model.findings)
    error = model.error if model.status is Status.ERROR else None
    return Judged(model.name, path, line, model.judged, issues, error, model.exit_code)


def _issue(finding: CheckFinding, model: str, result: Analysis | None, path: str, line: int | None) -> Issue:
    op = None if result is None else _operator_of(finding, result.ops)
    place = _line_of(op.origin) if op is not None else None
    about = op.id if op is not None and finding.where == op.name else finding.where
    key = "|".join((finding.rule, model, about))
    return Issue(
        finding.rule, finding.level, finding.message, model, finding.where,
        place[0] if place else path, place[1] if place else line,
        "" if op is None else ".".join(part for part in (op.module, op.name) if part),
        blake2b(key.encode("utf-8", "replace"), digest_size=16).hexdigest(), finding.ignored,
    )  # fmt: skip


def _operator_of(finding: CheckFinding | Finding, ops: Sequence[OpInfo]) -> OpInfo | None:
    """The operator to look at: the one named, else the heaviest in what the finding is about."""
    named = next((op for op in ops if op.name == finding.where), None)
    if named is not None or not ops:
        return named
    about = f"{finding.rule} {finding.where}"
    if "comm" in about or "params" in about:
        return max(ops, key=lambda op: op.params)
    if "memory" in about or "fit" in about:
        return max(ops, key=lambda op: op.write_bytes)
    if "flops" in about:
        return max(ops, key=lambda op: op.matmul_flops + op.elementwise_flops)
    if "step" in about or finding.rule == "regression":
        return max(ops, key=lambda op: op.time_s or 0.0)
    return None


def _line_of(origin: str) -> tuple[str, int] | None:
    """File and line of an operator's origin, where that is a file of the user's that is here."""
    match = _AT_LINE.search(origin)
    if match is None:
        return None
    file = match["file"] or match["file2"]
    if "site-packages" in file or not Path(file).is_file():
        return None
    return _relative(Path(file)), int(match["line"] or match["line2"])


def _file_of(source: str, folder: Path) -> str:
    """The file that a model's name stands for; '' where it names none."""
    where, _, _ = source.rpartition(":")
    for name in (source, where, source.partition(":")[2]):
        if name and (folder / name).exists():
            return _relative(folder / name)
    return ""


def _relative(path: Path) -> str:
    """Relative to the working folder if below it, with forward slashes."""
    whole = Path(os.path.normpath(path.absolute()))
    here = Path.cwd()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.as_posix()
