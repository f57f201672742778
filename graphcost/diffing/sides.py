"""One side of a comparison, from an analysis or from its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graphcost.diffing.metrics import Snapshot, snapshot_of
from graphcost.errors import DataFileError
from graphcost.result import SCHEMA_VERSION, Analysis, OpInfo


@dataclass(frozen=True, slots=True)
class Side:
    """A model's snapshot and operators; ``ops`` is None where the result was written without them."""

    name: str
    snapshot: Snapshot
    ops: tuple[OpInfo, ...] | None


def side_of(result: Analysis) -> Side:
    """An analysis as a side."""
    return Side(result.model.name, snapshot_of(result.to_dict(), result.ops), result.ops)


def read_sides(path: Path) -> list[Side] | None:
    """The results that a JSON file holds; None for a saved graph, which is a model.

    Takes what ``analyze``, ``count`` and ``check`` write. Raises ``DataFileError`` for
    anything else.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataFileError(f"{path}: no such file") from None
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path}: not JSON ({error})") from error
    if isinstance(data, Mapping) and "format" in data and "nodes" in data:
        return None
    return [_side(entry, path) for entry in _results(data, path)]


def _results(data: Any, path: Path) -> list[Any]:
    if not isinstance(data, Mapping) or "schema_version" not in data:
        raise DataFileError(
            f"{path}: neither a result nor a saved graph; write one with `graphcost analyze MODEL --per-op "
            f"--output {path.name}`"
        )
    if data["schema_version"] != SCHEMA_VERSION:
        raise DataFileError(
            f"{path}: schema version {data['schema_version']}, this graphcost reads {SCHEMA_VERSION}; write it anew"
        )
    if "models" in data:  # of `check`
        return [entry["analysis"] for entry in data["models"] if entry.get("analysis") is not None]
    return list(data["results"]) if "results" in data else [data]


def _side(data: Any, path: Path) -> Side:
    try:
        ops = tuple(_op(row) for row in data["ops"]) if "ops" in data else None
        return Side(str(data["model"]["name"]), snapshot_of(data, ops or ()), ops)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataFileError(f"{path}: a damaged result ({type(error).__name__}: {error})") from error


_OP_FIELDS = tuple(field.name for field in fields(OpInfo))


def _op(row: Mapping[str, Any]) -> OpInfo:
    return OpInfo(**{name: row[name] for name in _OP_FIELDS})
