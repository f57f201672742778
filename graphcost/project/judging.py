"""One model's findings: levels, budgets, ignores, and the status that follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase

from graphcost.diffing import Delta, ModelDiff, OperatorChanges, Side, diff_sides, lone_side, side_of
from graphcost.errors import CoverageError, exit_code_of, message_of
from graphcost.project.budgets import judge
from graphcost.project.config import Entry, Ignore
from graphcost.project.keys import LEVELS
from graphcost.result import Analysis, Finding
from graphcost.verdict import Verdict, require_coverage

ALWAYS_JUDGED = ("communication-share", "does-not-fit", "unknown-operator")


class Status(StrEnum):
    """The worst of a model's findings; ``error``: it could not be judged."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """A finding of a check. ``ignored``: the reason that an ignore gives; it then counts for nothing."""

    rule: str
    level: str
    message: str
    where: str
    ignored: str | None = None


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """One model. ``change`` against the base: added, removed, changed, unchanged; None without a base.

    ``judged``: rules and budgets that were looked at. ``line``: of its source in the configuration.
    """

    name: str
    source: str
    line: int | None
    status: Status
    exit_code: int
    error: str | None
    change: str | None
    findings: tuple[CheckFinding, ...]
    judged: tuple[str, ...]
    deltas: tuple[Delta, ...]
    same: tuple[Delta, ...]
    settings: tuple[str, ...]
    counts: Mapping[str, tuple[int, int]]
    operators: OperatorChanges | None
    analysis: Analysis | None

    @property
    def remarkable(self) -> bool:
        """Whether there is a finding over a note, ignored or not."""
        return any(finding.level != "note" for finding in self.findings)


def check_model(
    entry: Entry,
    found: Analysis | Exception,
    base: Side | None,
    *,
    has_base: bool,
    grown: bool,
    levels: Mapping[str, str],
    ignores: Iterable[Ignore],
) -> ModelCheck:
    """Judge one analysis. ``grown``: whether growth against ``base`` is judged; ``ignores``: those still in force."""
    judged = (*ALWAYS_JUDGED, *dict.fromkeys(budget.key for budget in entry.budgets))
    if isinstance(found, Exception):
        return ModelCheck(
            entry.name, entry.source, entry.line, Status.ERROR, exit_code_of(found), message_of(found),
            None, (), judged, (), (), (), {}, None, None,
        )  # fmt: skip
    head = side_of(found)
    diff: ModelDiff | None = None
    if has_base:
        diff = diff_sides(base, head) if base is not None else lone_side(head, "added")
    raw = [_by_doubt(one, found, entry.on_doubt) for one in found.findings]
    compared = base.snapshot if base is not None and grown else None
    raw += [one for budget in entry.budgets if (one := judge(budget, head.snapshot, compared, found)) is not None]
    findings = tuple(_ignored(_leveled(one, levels), entry.name, ignores) for one in raw)
    status, code, error = _status(findings), 0, None
    if status is Status.FAIL:
        code = 1
    try:
        require_coverage(found, entry.least_coverage)
    except CoverageError as missing:
        status, code, error = Status.ERROR, missing.exit_code, str(missing)
    return ModelCheck(
        entry.name, entry.source, entry.line, status, code, error, diff.what if diff else None, findings, judged,
        diff.deltas if diff else (), diff.same if diff else (), diff.settings if diff else (),
        diff.counts if diff else {}, diff.operators if diff else None, found,
    )  # fmt: skip


def removed_model(side: Side) -> ModelCheck:
    """A model that the base has and the project no longer names."""
    diff = lone_side(side, "removed")
    return ModelCheck(
        side.name, side.name, None, Status.PASS, 0, None, "removed", (), (), (), diff.same, (), {}, None, None
    )


def matches(ignore: Ignore, model: str, finding: Finding | CheckFinding) -> bool:
    """Whether an ignore is about this finding."""
    return (
        ignore.rule == finding.rule and fnmatchcase(model, ignore.model) and fnmatchcase(finding.where, ignore.where)
    )


def in_force(ignores: Sequence[Ignore], today: date) -> list[Ignore]:
    """Ignores whose last day has not passed."""
    return [ignore for ignore in ignores if ignore.expires is None or today <= ignore.expires]


def _by_doubt(finding: Finding, result: Analysis, on_doubt: str) -> Finding:
    """``on-doubt`` decides about a share whose interval straddles the limit."""
    if finding.rule != "communication-share" or result.step.verdict != Verdict.TOO_CLOSE:
        return finding
    return Finding(finding.rule, LEVELS[on_doubt], finding.message, finding.where)


def _leveled(finding: Finding, levels: Mapping[str, str]) -> Finding:
    """``levels`` lowers errors and raises warnings; what is only a warning of its budget stays one under ``fail``."""
    level = levels.get(finding.rule)
    if level is None or (finding.rule in ("budget", "regression") and finding.level == "warning"):
        return finding
    return Finding(finding.rule, level, finding.message, finding.where)


def _ignored(finding: Finding, model: str, ignores: Iterable[Ignore]) -> CheckFinding:
    reason = next((one.reason for one in ignores if matches(one, model, finding)), None)
    return CheckFinding(finding.rule, finding.level, finding.message, finding.where, reason)


def _status(findings: Iterable[CheckFinding]) -> Status:
    levels = {finding.level for finding in findings if finding.ignored is None}
    if "error" in levels:
        return Status.FAIL
    return Status.WARN if "warning" in levels else Status.PASS
