"""The check of a whole project: analyse, compare with the base, judge, sum up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from graphcost._version import __version__
from graphcost.diffing import Side, Snapshot, side_of, snapshot_of
from graphcost.errors import DataFileError, GraphcostError, UsageError, message_of
from graphcost.project.baseline import Baseline, read_baseline, staleness, write_baseline
from graphcost.project.config import DEFAULT_BASELINE, Entry, Ignore, Project, read
from graphcost.project.judging import ModelCheck, check_model, in_force, matches, removed_model
from graphcost.project.keys import Vocabulary
from graphcost.project.revisions import Revision, checked_out
from graphcost.project.running import Job, run_jobs
from graphcost.registry import did_you_mean
from graphcost.result import SCHEMA_VERSION, Analysis, plain


@dataclass(frozen=True, slots=True)
class Base:
    """What the models are compared with: a ``baseline`` file, or a git ``revision``."""

    kind: str
    name: str
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Everything that ``graphcost check`` says."""

    graphcost_version: str
    command: str
    config: str
    base: Base | None
    exit_code: int
    notes: tuple[str, ...]
    models: tuple[ModelCheck, ...]

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """The models that could be analysed."""
        return tuple(model.analysis for model in self.models if model.analysis is not None)

    @property
    def quiet(self) -> bool:
        """Nothing to say: every model passes, and none differs from the base."""
        return all(
            model.status == "pass" and model.change in (None, "unchanged") and not model.remarkable
            for model in self.models
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the JSON contract's keys; the schema ships as ``graphcost/report/check.schema.json``."""
        light = replace(self, models=tuple(replace(model, analysis=None) for model in self.models))
        data: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **plain(light)}
        for entry, model in zip(data["models"], self.models, strict=True):
            entry["analysis"] = None if model.analysis is None else model.analysis.to_dict()
        return data


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How a check runs. ``only``: names of models, all if empty. ``today`` decides which ignores have expired."""

    today: date
    only: Sequence[str] = ()
    against: str | None = None
    baseline: Path | None = None
    update_baseline: bool = False
    workers: int = 1
    backend: str = "local"
    progress: Callable[[str, int], Callable[[Any], None]] = field(default=lambda what, count: lambda item: None)


def check_project(project: Project, vocabulary: Vocabulary, options: CheckOptions) -> CheckResult:
    """Analyse and judge every model of ``project``.

    Raises ``UsageError`` for a name or revision that is not there and ``DataFileError`` for a
    baseline that cannot be read or written; a model that fails is a result.
    """
    entries = _chosen(project, options.only)
    found = _analyses(entries, project.folder, options, "models")
    notes: list[str] = []
    base: Base | None
    sides: Mapping[str, Side] | None
    if options.against is not None:
        base, sides = _at_revision(project, vocabulary, options, notes)
        old = None
    else:
        base, sides, old = _in_baseline(project, options, notes)
    active = in_force(project.ignores, options.today)
    models = [
        check_model(
            entry, result, (sides or {}).get(entry.name), has_base=sides is not None,
            grown=not options.update_baseline, levels=project.levels, ignores=active,
        )
        for entry, result in zip(entries, found, strict=True)
    ]  # fmt: skip
    notes += _about_ignores(project, active, models, all_models=not options.only)
    if sides is not None and not options.only:
        named = {entry.name for entry in project.entries}
        models += [removed_model(side) for name, side in sides.items() if name not in named]
    if options.update_baseline:
        notes.append(_updated(project, options, old, models))
    code = max((model.exit_code for model in models), default=0)
    return CheckResult(__version__, "check", str(project.file), base, code, tuple(notes), tuple(models))


def _chosen(project: Project, only: Sequence[str]) -> list[Entry]:
    known = {entry.name: entry for entry in project.entries}
    for name in only:
        if name not in known:
            raise UsageError(f"{project.file} has no model named {name!r}{did_you_mean(name, known)}")
    return [entry for entry in project.entries if not only or entry.name in only]


def _analyses(
    entries: Sequence[Entry], folder: Path, options: CheckOptions, what: str, *, apart: bool = False
) -> list[Analysis | Exception]:
    jobs = [Job(entry.source, entry.options, folder.resolve()) for entry in entries]
    done = options.progress(what, len(jobs))
    return list(run_jobs(jobs, workers=options.workers, backend=options.backend, done=done, apart=apart))


def _at_revision(
    project: Project, vocabulary: Vocabulary, options: CheckOptions, notes: list[str]
) -> tuple[Base, dict[str, Side]]:
    """The models as they are at the revision, under the configuration that it has."""
    assert options.against is not None
    with checked_out(options.against, project.folder) as revision:
        entries = [
            entry
            for entry in _entries_there(project, vocabulary, revision, notes)
            if _is_there(entry.source, revision.folder) and (not options.only or entry.name in options.only)
        ]
        # Modules of the user's that this process holds are of the other revision: processes of their own.
        found = _analyses(entries, revision.folder, options, f"models at {options.against}", apart=True)
    sides = {}
    for entry, result in zip(entries, found, strict=True):
        if isinstance(result, Exception):
            notes.append(f"{entry.name} cannot be analysed at {options.against}: {message_of(result)}")
        else:
            sides[entry.name] = replace(side_of(result), name=entry.name)
    return Base("revision", revision.ref, revision.commit), sides


def _entries_there(project: Project, vocabulary: Vocabulary, revision: Revision, notes: list[str]) -> Sequence[Entry]:
    file = revision.folder / project.file.name
    if not file.is_file():
        return project.entries
    try:
        return read(file, vocabulary).entries
    except GraphcostError as error:
        message = str(error).replace(f"{revision.folder}/", "")
        notes.append(f"at {revision.ref} the configuration does not hold ({message}); today's was used there")
        return project.entries


_NO_FILE = ("zoo", "timm", "keras")


def _is_there(source: str, folder: Path) -> bool:
    """Whether a revision has the file that a source names; what names no file is there."""
    if (folder / source).exists():
        return True
    prefix, colon, rest = source.partition(":")
    if not colon:
        return False
    if prefix in _NO_FILE:
        return True
    if prefix == "transformers":
        return (folder / rest).exists()
    return not prefix.endswith(".py") or (folder / prefix).exists()


def _in_baseline(
    project: Project, options: CheckOptions, notes: list[str]
) -> tuple[Base | None, dict[str, Side] | None, Baseline | None]:
    path = options.baseline or project.baseline
    if path is None:
        return None, None, None
    if not path.exists():
        if not options.update_baseline:
            notes.append(
                f"baseline {path.name} is not written yet, so growth is not judged; "
                "graphcost check --update-baseline writes it"
            )
        return None, None, None
    try:
        baseline = read_baseline(path)
    except DataFileError as error:
        if not options.update_baseline:
            raise
        notes.append(f"replaced: {error}")
        return None, None, None
    if not options.update_baseline:
        notes += staleness(path, baseline, [entry.name for entry in project.entries])
    sides = {name: Side(name, snapshot, None) for name, snapshot in baseline.models.items()}
    return Base("baseline", path.name), sides, baseline


def _updated(project: Project, options: CheckOptions, old: Baseline | None, models: Sequence[ModelCheck]) -> str:
    """Write the baseline; models that were not analysed this time keep what they have."""
    path = options.baseline or project.baseline or project.folder / DEFAULT_BASELINE
    named = {entry.name for entry in project.entries}
    kept = {name: one for name, one in (old.models if old is not None else {}).items() if name in named}
    new: dict[str, Snapshot] = {
        model.name: snapshot_of(model.analysis.to_dict(), model.analysis.ops)
        for model in models
        if model.analysis is not None
    }
    changed = write_baseline(path, {**kept, **new}, old)
    count = len({**kept, **new})
    return f"{path.name}: {'written' if changed else 'up to date'}, {count} model{'' if count == 1 else 's'}"


def _about_ignores(
    project: Project, active: Sequence[Ignore], models: Sequence[ModelCheck], *, all_models: bool
) -> list[str]:
    notes = []
    for ignore in project.ignores:
        place = f"{project.file.name}:{ignore.line}" if ignore.line else project.file.name
        if ignore not in active:
            notes.append(
                f"{place}: the ignore of {ignore.rule} ({ignore.reason}) expired on {ignore.expires}; "
                "its findings count again"
            )
        elif all_models and not any(
            matches(ignore, model.name, finding) for model in models for finding in model.findings
        ):
            notes.append(f"{place}: the ignore of {ignore.rule} ({ignore.reason}) matches no finding; remove it")
    return notes
