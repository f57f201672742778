"""``graphcost.toml`` or ``[tool.graphcost]``: found, read, and refused where it does not hold together.

The keys are a table (``keys``), so validation is a walk over it: every message names file,
line, key, and what would be right.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

from graphcost.errors import DataFileError, GraphcostError, ModelFileError, UsageError
from graphcost.placing import AnalysisOptions, resolve
from graphcost.project.budgets import BUDGETS, Budget, parse_limits
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
from graphcost.project.lines import line_of
from graphcost.registry import did_you_mean
from graphcost.sources import expand

FILE = "graphcost.toml"
PYPROJECT = "pyproject.toml"
DEFAULT_BASELINE = "graphcost-baseline.json"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings that somebody accepted, with the reason, until the end of ``expires``."""

    rule: str
    model: str
    where: str
    reason: str
    expires: date | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the project. ``least_coverage``: share of operators that need a rule."""

    name: str
    source: str
    options: AnalysisOptions
    on_doubt: str
    least_coverage: float | None
    budgets: tuple[Budget, ...]
    line: int | None


@dataclass(frozen=True, slots=True)
class Project:
    """A configuration. ``baseline`` is None where nobody named one and the default file is not there."""

    file: Path
    entries: tuple[Entry, ...]
    baseline: Path | None
    levels: Mapping[str, str]
    ignores: tuple[Ignore, ...]
    workers: int | None

    @property
    def folder(self) -> Path:
        """What paths in the configuration start from."""
        return self.file.parent


def find(start: Path) -> Path:
    """The configuration of ``start`` or the nearest folder above; raises ``DataFileError`` where there is none."""
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder / FILE
        pyproject = folder / PYPROJECT
        if pyproject.is_file() and _section(_toml(pyproject)[0]) is not None:
            return pyproject
    raise DataFileError(
        f"no configuration: neither {FILE} nor a {PYPROJECT} with [tool.graphcost] in {start} or above; "
        'write one, e.g. [[models]] source = "zoo:resnet50" gpus = 8'
    )


def read(file: Path, vocabulary: Vocabulary) -> Project:
    """The project of a configuration file; raises ``DataFileError`` and ``UsageError`` with file and line."""
    data, text = _toml(file)
    prefix: tuple[str, ...] = ()
    if file.name == PYPROJECT:
        section = _section(data)
        if section is None:
            raise DataFileError(f"{file}: no [tool.graphcost]")
        data, prefix = section, ("tool", "graphcost")
    with contextlib.chdir(file.parent):
        return _Reader(file, text, prefix, vocabulary).project(data)


def _toml(file: Path) -> tuple[dict[str, Any], str]:
    try:
        text = file.read_text("utf-8")
        return tomllib.loads(text), text
    except FileNotFoundError:
        raise DataFileError(f"{file}: no such file") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        if place is None:
            raise DataFileError(f"{file}: not TOML: {error}") from None
        what = str(error)[: place.start()]
        raise DataFileError(f"{file}:{place[1]}: not TOML: {what} (column {place[2]})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataFileError(f"{file}: cannot be read ({error})") from error


def _section(data: Mapping[str, Any]) -> dict[str, Any] | None:
    tool = data.get("tool")
    section = tool.get("graphcost") if isinstance(tool, Mapping) else None
    return section if isinstance(section, dict) else None


class _Reader:
    """One file's walk over the table of keys."""

    def __init__(self, file: Path, text: str, prefix: tuple[str, ...], vocabulary: Vocabulary) -> None:
        self.file = file
        self.text = text
        self.prefix = prefix
        self.vocabulary = vocabulary
        self.shared = (*vocabulary.keys, *BUDGET_KEYS)

    def project(self, data: Mapping[str, Any]) -> Project:
        """Everything, checked."""
        self.check(data, (*self.shared, *PROJECT_KEYS), ())
        levels = self.levels(data.get("levels", {}))
        ignores = tuple(self.ignore(item, index) for index, item in enumerate(data.get("ignore", [])))
        if not data.get("models"):
            self.fail((), f"no models; add [[{'.'.join((*self.prefix, 'models'))}]] with a source")
        entries: list[Entry] = []
        for index, item in enumerate(data["models"]):
            entries += self.entries(data, item, index)
        self.unique(entries)
        named = data.get("baseline")
        baseline = Path(named or DEFAULT_BASELINE)
        known = named is not None or baseline.exists() or any(b.relative for entry in entries for b in entry.budgets)
        workers = data.get("workers")
        if workers is not None and workers < 1:
            self.fail(("workers",), f"{workers}: at least one")
        return Project(
            self.file, tuple(entries), self.file.parent / baseline if known else None, levels, ignores, workers
        )

    def check(self, data: Any, keys: Sequence[Key], path: tuple[str | int, ...]) -> None:
        """Refuse keys that are not in the table, and values that are no such thing."""
        known = {key.name: key for key in keys}
        for name, value in data.items():
            place = (*path, name)
            key = known.get(name)
            if key is None:
                self.fail(place, f"no key named {name!r}{did_you_mean(name, known)}")
            if not _accepts(key.kind, value):
                self.fail(place, f"{value!r} is not {key.kind.words}")
            if key.choices and value not in key.choices:
                self.fail(place, f"{value!r}{did_you_mean(value, key.choices)} ({', '.join(key.choices)})")

    def levels(self, data: Mapping[str, Any]) -> dict[str, str]:
        """Rule -> level of a finding."""
        self.check(
            data, [Key(rule, Kind.TEXT, doc, choices=tuple(LEVELS)) for rule, doc in RULES.items()], ("levels",)
        )
        return {rule: LEVELS[word] for rule, word in data.items()}

    def ignore(self, data: Mapping[str, Any], index: int) -> Ignore:
        """One ``[[ignore]]``."""
        path = ("ignore", index)
        self.check(data, IGNORE_KEYS, path)
        if not str(data.get("reason", "")).strip():
            self.fail(path, "an ignored finding needs a reason")
        if "rule" not in data:
            self.fail(path, f"name the rule that is ignored ({', '.join(RULES)})")
        expires = data.get("expires")
        if isinstance(expires, str):
            try:
                expires = date.fromisoformat(expires)
            except ValueError:
                self.fail((*path, "expires"), f"{expires!r} is not {Kind.DATE.words}")
        return Ignore(
            data["rule"], data.get("model", "*"), data.get("where", "*"), data["reason"], expires, self.line(path)
        )

    def entries(self, data: Mapping[str, Any], item: Mapping[str, Any], index: int) -> list[Entry]:
        """One ``[[models]]``: a model, or every file that its source stands for."""
        path = ("models", index)
        self.check(item, (*self.shared, *MODEL_KEYS), path)
        if not item.get("source"):
            self.fail(path, "a model needs a source")
        source = item["source"]
        try:
            sources = _sources(source)
        except GraphcostError as error:
            self.fail((*path, "source"), str(error), like=error)
        if len(sources) != 1 and "name" in item:
            self.fail((*path, "name"), f"{source} stands for {len(sources)} models, which cannot share a name")
        budgets = self.budgets(data, item, path)
        limits = [b.limit for b in budgets if b.key == "max-comm-share" and not b.relative and b.level == "fail"]
        values = self.values(data, item, path, [] if not limits else [f"--max-comm-share={min(limits)}"])
        options = self.vocabulary.options_of(values)
        try:
            resolve(options)
        except GraphcostError as error:
            self.fail(path, f"{source}: {error}", like=error)
        least = 1.0 if values["strict"] else values["min_coverage"]
        judged = tuple(b for b in budgets if b.key != "max-comm-share" or b.relative or b.level == "warn")
        return [
            Entry(
                item.get("name", one), one, options, values["on_doubt"], least, judged, self.line((*path, "source"))
            )
            for one in (Path(s).as_posix() if Path(s).exists() else s for s in sources)
        ]

    def budgets(self, data: Mapping[str, Any], item: Mapping[str, Any], path: tuple[str | int, ...]) -> list[Budget]:
        """A model's own budgets, and the project's where it has none of that name."""
        found: list[Budget] = []
        for key in BUDGETS:
            place = (*path, key) if key in item else (key,)
            value = item.get(key, data.get(key))
            if value is None:
                continue
            try:
                found += parse_limits(key, value)
            except UsageError as error:
                self.fail(place, f"{key}: {error}")
        return found

    def values(
        self, data: Mapping[str, Any], item: Mapping[str, Any], path: tuple[str | int, ...], words: list[str]
    ) -> Mapping[str, Any]:
        """A model's options as command-line values."""
        for key in self.vocabulary.keys:
            place = (*path, key.name) if key.name in item else (key.name,)
            value = item.get(key.name, data.get(key.name))
            if value is None:
                continue
            added = _words(key, value)
            try:
                self.vocabulary.values_of(added)
            except UsageError as error:
                self.fail(place, str(error))
            words += added
        return self.vocabulary.values_of(words)

    def unique(self, entries: Sequence[Entry]) -> None:
        """Names are how reports, baseline and revisions tell models apart."""
        seen: dict[str, Entry] = {}
        for entry in entries:
            if entry.name in seen:
                where = f"{self.file}:{entry.line}" if entry.line else str(self.file)
                raise DataFileError(
                    f'{where}: two models are named {entry.name!r}; give one a name = "..." of its own'
                )
            seen[entry.name] = entry

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """Where ``path`` stands in the file."""
        return line_of(self.text, (*self.prefix, *path))

    def fail(self, path: tuple[str | int, ...], message: str, *, like: GraphcostError | None = None) -> NoReturn:
        """Raise with file and line; as the kind of error that ``like`` is."""
        line = self.line(path)
        kind = type(like) if like is not None else DataFileError
        raise kind(f"{self.file}{f':{line}' if line else ''}: {message}") from like


def _sources(source: str) -> list[str]:
    """What a source stands for: a pattern or a folder for its model files, anything else for itself."""
    if not any(mark in source for mark in "*?[") or Path(source).exists():
        return expand(source)
    found = sorted(path.as_posix() for path in Path().glob(source))
    if not found:
        raise ModelFileError(f"{source}: no file matches")
    return [one for path in found for one in expand(path)]


def _accepts(kind: Kind, value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    number = whole or isinstance(value, float)
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return {
        Kind.TEXT: isinstance(value, str),
        Kind.INTEGER: whole,
        Kind.NUMBER: number,
        Kind.FLAG: isinstance(value, bool),
        Kind.QUANTITY: isinstance(value, str) or number,
        Kind.TEXTS: isinstance(value, str) or texts,
        Kind.PAIRS: isinstance(value, (str, dict)) or texts,
        Kind.LIMIT: isinstance(value, (str, list, dict)) or number,
        Kind.DATE: isinstance(value, (str, date)),
        Kind.TABLE: isinstance(value, dict),
        Kind.TABLES: isinstance(value, list) and all(isinstance(item, dict) for item in value),
    }[kind]


def _words(key: Key, value: Any) -> list[str]:
    """``gpus = 8`` -> ``--gpus=8``, as on a command line."""
    if key.kind is Kind.FLAG:
        return [key.option] if value else []
    if isinstance(value, Mapping):
        value = [f"{name}={_text(item)}" for name, item in value.items()]
    return [f"{key.option}={_text(item)}" for item in (value if isinstance(value, list) else [value])]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
