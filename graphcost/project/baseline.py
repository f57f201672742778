"""The baseline: a small file beside the configuration, committed, that growth is measured against.

Sorted, three lines a model, numbers to the digits that are compared, and a number is kept
while the new one does not differ from it: nothing in the file changes without a change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from graphcost._version import __version__
from graphcost.diffing import METRICS, Snapshot
from graphcost.errors import DataFileError

BASELINE_SCHEMA = 1
_REMEDY = "write it anew with graphcost check --update-baseline"
_PARTS = ("metrics", "operators", "settings")


@dataclass(frozen=True, slots=True)
class Baseline:
    """Snapshots by model name, and what made them. ``constants``: digest of the engine's data files."""

    graphcost_version: str
    constants: str
    models: Mapping[str, Snapshot]


@cache
def constants_digest() -> str:
    """Digest of the constants that predictions follow from (engine and network data files)."""
    digest = blake2b(digest_size=6)
    for package in ("graphcost.engine", "graphcost.network"):
        for name, data in sorted(_data_files(files(package))):
            digest.update(name.encode() + b"\\0" + data)
    return digest.hexdigest()


def _data_files(folder: Traversable) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _data_files(entry)
        elif entry.name.endswith(".toml"):
            found.append((f"{folder.name}/{entry.name}", entry.read_bytes()))
    return found


def read_baseline(path: Path) -> Baseline:
    """A baseline file; raises ``DataFileError`` for another schema or a damaged file."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path}: not a baseline, no JSON ({error}); {_REMEDY}") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != BASELINE_SCHEMA:
        if isinstance(version, int) and version > BASELINE_SCHEMA:
            remedy = f"it is of graphcost {data.get('graphcost_version')}; install that, or {_REMEDY}"
        else:
            remedy = _REMEDY
        raise DataFileError(f"{path}: baseline schema {version}, this graphcost reads {BASELINE_SCHEMA}; {remedy}")
    try:
        models = {str(name): _snapshot(entry) for name, entry in data["models"].items()}
        return Baseline(str(data["graphcost_version"]), str(data["constants"]), models)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataFileError(f"{path}: a damaged baseline ({type(error).__name__}: {error}); {_REMEDY}") from error


def _snapshot(entry: Mapping[str, Any]) -> Snapshot:
    metrics = {key: float(value) for key, value in entry["metrics"].items() if key in METRICS}
    return Snapshot(
        {key: int(value) if METRICS[key].exact else value for key, value in metrics.items()},
        dict(entry["operators"]),
        dict(entry["settings"]),
    )


def write_baseline(path: Path, models: Mapping[str, Snapshot], before: Baseline | None) -> bool:
    """Write ``models``; numbers that do not differ from those of ``before`` stay. Returns whether the file changed.

    Raises ``DataFileError`` where it cannot be written.
    """
    old = before.models if before is not None else {}
    kept = {name: _kept(snapshot, old.get(name)) for name, snapshot in models.items()}
    text = baseline_text(kept)
    try:
        if path.exists() and path.read_text("utf-8") == text:
            return False
        path.write_text(text, "utf-8")
    except OSError as error:
        raise DataFileError(f"{path}: the baseline cannot be written ({error.strerror})") from error
    return True


def _kept(new: Snapshot, old: Snapshot | None) -> Snapshot:
    if old is None:
        return new
    metrics = {
        key: old.metrics[key] if key in old.metrics and not METRICS[key].differs(old.metrics[key], value) else value
        for key, value in new.metrics.items()
    }
    return Snapshot(metrics, new.operators, new.settings)


def baseline_text(models: Mapping[str, Snapshot]) -> str:
    """The file's text: sorted keys, one line for each part of a model."""
    head = {
        "schema_version": BASELINE_SCHEMA,
        "graphcost_version": __version__,
        "constants": constants_digest(),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    entries = []
    for name, snapshot in sorted(models.items()):
        parts = [f"   {json.dumps(part)}: {json.dumps(getattr(snapshot, part), sort_keys=True)}" for part in _PARTS]
        entries.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n  }")
    return "\n".join(["{", *lines, ' "models": {', ",\n".join(entries), " }", "}"]) + "\n"


def staleness(path: Path, baseline: Baseline, names: Sequence[str]) -> list[str]:
    """What makes a baseline a doubtful witness, a sentence each; ``names``: the project's models."""
    notes = []
    update = "graphcost check --update-baseline makes it anew"
    if baseline.graphcost_version != __version__:
        notes.append(
            f"{path.name} was written by graphcost {baseline.graphcost_version}, this is {__version__}; {update}"
        )
    elif baseline.constants != constants_digest():
        notes.append(f"{path.name} was written with other engine constants; {update}")
    gone = sorted(set(baseline.models) - set(names))
    if gone:
        notes.append(f"{path.name} holds models that the project does not name: {', '.join(gone)}; {update}")
    return notes
