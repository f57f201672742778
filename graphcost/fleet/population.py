"""A synthetic population of jobs from declared distributions (``population.toml``).

Rows come in fixed blocks, each with a random stream of its own (numpy ``SeedSequence`` by
seed and block), so that a table depends on its seed alone: not on how it is written, and
a shorter one is the beginning of a longer one.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphcost._version import __version__
from graphcost.device_db import load_cluster
from graphcost.engine.paper import medium_bytes_per_s, utilisation
from graphcost.errors import UsageError
from graphcost.fleet.columns import REQUIRED
from graphcost.fleet.jobs import Column, Jobs
from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, BY_SIZE, KINDS, WORDS, JobKind
from graphcost.fleet.table import SYNTHETIC_KEY, polars_module
from graphcost.fleet.writing import write_frames
from graphcost.hardware import Cluster

if TYPE_CHECKING:
    import polars as pl

DRAW_ROWS = 1 << 16
"""Rows of one random stream. Part of what a seed means: changing it changes every table."""

MOST_JOBS = 10**9
ID_DIGITS = 10
PARTS = ("input", "compute", "memory", "weights")
_BYTE_COLUMNS = ("input_bytes", "flops", "mem_bytes", "dense_weight_bytes", "sparse_weight_bytes",
                 "dense_model_bytes", "sparse_model_bytes")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Population:
    """The declared distributions with the names of fitted numbers replaced by their values."""

    mark: str
    fingerprint: str
    cluster: Cluster
    copies: float
    types: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Any]
    targets: tuple[Mapping[str, Any], ...]
    fitted: Mapping[str, float]


@cache
def shipped_text() -> str:
    """``population.toml`` as it is read."""
    return files("graphcost.fleet").joinpath("population.toml").read_text("utf-8")


def load_population(fitted: Mapping[str, float] | None = None) -> Population:
    """The shipped population; ``fitted`` replaces its fitted numbers (for the fit itself)."""
    data = tomllib.loads(shipped_text())
    values = {**data["fitted"], **(fitted or {})}
    types = {name: _resolved(entry, values) for name, entry in data["types"].items()}
    given = sum(entry["job_share"] for entry in types.values() if entry["job_share"] != "rest")
    for entry in types.values():
        entry["job_share"] = 1 - given if entry["job_share"] == "rest" else entry["job_share"]
    digest = hashlib.sha256(shipped_text().encode()).hexdigest()[:12]
    return Population(
        data["mark"], digest, load_cluster(data["cluster"]), data["copies"], types,
        _resolved(data["tables"], values), tuple(data["targets"]), values,
    )  # fmt: skip


def _resolved(entry: Mapping[str, Any], values: Mapping[str, float]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _resolved(value, values)
        return values.get(value, value) if isinstance(value, str) else value

    return {key: one(value) for key, value in entry.items()}


@dataclass(frozen=True, slots=True)
class Draws:
    """Standard draws of one block, used by every type alike."""

    pick: Column
    size: Column
    has_table: Column
    normal: Mapping[str, Column]


_NORMALS = ("cnodes", "step_s", *PARTS, "batch", "table", "traffic")


def _draws(seed: int, block: int) -> Draws:
    stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(block,))))
    pick, size, has_table = stream.random((3, DRAW_ROWS))
    return Draws(pick, size, has_table, dict(zip(_NORMALS, stream.standard_normal((len(_NORMALS), DRAW_ROWS)),
                                                 strict=True)))  # fmt: skip


def draw(people: Population, seed: int, block: int) -> tuple[NDArray[np.intp], dict[str, Column]]:
    """One block: number of each job's type, in the file's order, and its columns."""
    draws = _draws(seed, block)
    edges = np.cumsum([entry["job_share"] for entry in people.types.values()])
    kind_index = np.minimum(np.searchsorted(edges, draws.pick, side="right"), len(edges) - 1)
    columns = {name: np.zeros(DRAW_ROWS) for name in ("cnodes", "batch", *_BYTE_COLUMNS)}
    for index, (word, entry) in enumerate(people.types.items()):
        rows = np.flatnonzero(kind_index == index)
        for name, values in _columns(people, word, entry, draws, rows).items():
            columns[name][rows] = values
    return kind_index, columns


def _columns(
    people: Population, word: str, entry: Mapping[str, Any], draws: Draws, rows: NDArray[np.intp]
) -> dict[str, Column]:
    normal = {name: values[rows] for name, values in draws.normal.items()}
    cluster = people.cluster
    share, server = utilisation(cluster), cluster.server
    cnodes = _cnodes(entry["cnodes"], normal["cnodes"], draws.size[rows])
    step_s = _lognormal(entry["step_s"], normal["step_s"])
    shares = _softmax({part: entry[part] for part in PARTS if part in entry}, normal)
    weight_bytes = np.zeros(len(rows))
    sharing = np.ones(len(rows))
    for kind, of_kind in _kinds(word, cnodes, cluster):
        sharing[of_kind] = kind.input_sharing(cnodes[of_kind], cluster)
        media = kind.media(cluster)
        if media and "weights" in shares:
            per_byte = sum(1 / (share * medium_bytes_per_s(cluster, medium)) for medium in media)
            weight_bytes[of_kind] = (shares["weights"] * step_s)[of_kind] / per_byte
    has_table = draws.has_table[rows] < entry["table_share"]
    traffic = people.tables["traffic_share"]
    sparse = np.where(has_table, _logistic(traffic["mean"] + traffic["sigma"] * normal["traffic"]), 0.0)
    dense_bytes = weight_bytes * (1 - sparse)
    return {
        "cnodes": cnodes,
        "batch": 2.0 ** np.clip(
            np.rint(entry["batch_log2"]["mean"] + entry["batch_log2"]["sigma"] * normal["batch"]), 0, 16
        ),
        "input_bytes": np.rint(shares["input"] * step_s * share * server.pcie.bytes_per_s / sharing),
        "flops": np.rint(shares["compute"] * step_s * share * cluster.device.peak("fp32")),
        "mem_bytes": np.rint(shares["memory"] * step_s * share * cluster.device.mem_bytes_per_s),
        "dense_weight_bytes": np.rint(dense_bytes),
        "sparse_weight_bytes": np.rint(weight_bytes - dense_bytes),
        # Pulled and pushed once, a weight is half of its traffic; it has `copies` on the device.
        "dense_model_bytes": np.rint(people.copies * dense_bytes / 2),
        "sparse_model_bytes": np.rint(np.where(has_table, _lognormal(people.tables["bytes"], normal["table"]), 0.0)),
    }  # fmt: skip


def _kinds(word: str, cnodes: Column, cluster: Cluster) -> Iterator[tuple[JobKind, NDArray[np.bool_]]]:
    """The kinds that a table's word means for these numbers of cNodes."""
    code = WORDS[word]
    if code != BY_SIZE:
        yield KINDS[code], np.ones(len(cnodes), dtype=bool)
        return
    local = cnodes <= cluster.server.gpus
    yield ALLREDUCE_LOCAL, local
    yield ALLREDUCE_CLUSTER, ~local


def _cnodes(entry: Mapping[str, Any], normal: Column, uniform: Column) -> Column:
    if "values" in entry:
        edges = np.cumsum(entry["weights"]) / np.sum(entry["weights"])
        picked = np.minimum(np.searchsorted(edges, uniform, side="right"), len(edges) - 1)
        found: Column = np.asarray(entry["values"], dtype=float)[picked]
        return found
    return np.clip(np.rint(_lognormal(entry, normal)), 1, entry["most"])


def _lognormal(entry: Mapping[str, Any], normal: Column) -> Column:
    values: Column = entry["median"] * np.exp(entry["sigma"] * normal)
    return np.minimum(values, entry["most"]) if "most" in entry else values


def _logistic(values: Column) -> Column:
    found: Column = 1 / (1 + np.exp(-values))
    return found


def _softmax(entries: Mapping[str, Any], normal: Mapping[str, Column]) -> dict[str, Column]:
    raw = {part: np.exp(entry["mean"] + entry["sigma"] * normal[part]) for part, entry in entries.items()}
    whole = np.sum(list(raw.values()), axis=0)
    return {part: values / whole for part, values in raw.items()}


def as_jobs(people: Population, kind_index: NDArray[np.intp], columns: Mapping[str, Column]) -> Jobs:
    """A drawn block as the equations see it, without a file between."""
    codes = np.array([WORDS[word] for word in people.types], dtype=np.uint8)[kind_index]
    for kind, rows in _kinds("allreduce", columns["cnodes"], people.cluster):
        codes[(codes == BY_SIZE) & rows] = kind.code
    moved = columns["dense_weight_bytes"] + columns["sparse_weight_bytes"]
    return Jobs(
        codes, columns["cnodes"], columns["batch"], columns["input_bytes"], columns["flops"], columns["mem_bytes"],
        moved, columns["dense_model_bytes"], columns["sparse_model_bytes"], np.ones(len(codes), dtype=bool),
    )  # fmt: skip


def mark_of(people: Population, seed: int, count: int) -> str:
    """What a generated table says about itself."""
    return (
        f"SYNTHETIC population, {people.mark}; graphcost {__version__} fleet generate --seed {seed} --count {count}, "
        f"population.toml {people.fingerprint}"
    )


def generate(output: str, *, seed: int, count: int) -> str:
    """Write ``count`` drawn jobs to a CSV or Parquet file; what the file says about itself.

    Raises ``UsageError`` for a count below 1, a negative seed, or a file that cannot be written.
    """
    if not 1 <= count <= MOST_JOBS:
        raise UsageError(f"--count {count}: between 1 and {MOST_JOBS:,} jobs")
    if seed < 0:
        raise UsageError(f"--seed {seed}: a whole number from 0")
    pl = polars_module()
    people = load_population()
    mark = mark_of(people, seed, count)
    schema: dict[str, Any] = dict.fromkeys((*REQUIRED, "dense_model_bytes", "sparse_model_bytes"), pl.Int64)
    schema.update(job_id=pl.String, arch=pl.String)
    write_frames(output, _frames(people, seed, count), schema, {SYNTHETIC_KEY: mark})
    return mark


def _frames(people: Population, seed: int, count: int) -> Iterator[pl.DataFrame]:
    pl = polars_module()
    words = pl.Series("arch", list(people.types))
    for block in range(-(-count // DRAW_ROWS)):
        first = block * DRAW_ROWS
        rows = min(DRAW_ROWS, count - first)
        kind_index, columns = draw(people, seed, block)
        ids = pl.int_range(first, first + rows, eager=True).cast(pl.String).str.zfill(ID_DIGITS)
        frame = pl.DataFrame({name: values[:rows].astype(np.int64) for name, values in columns.items()})
        yield frame.select(
            ("job-" + ids).alias("job_id"), words.gather(kind_index[:rows]).alias("arch"),
            *(name for name in (*REQUIRED, "dense_model_bytes", "sparse_model_bytes") if name in columns),
        )  # fmt: skip
