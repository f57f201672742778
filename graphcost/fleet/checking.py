"""Checks of one block of a job table, on whole columns; the first wrong cell is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphcost.errors import DataFileError
from graphcost.fleet.columns import ALL_NUMBERS, ARCH, ID, MOST, NULLABLE
from graphcost.fleet.jobs import Column
from graphcost.fleet.kinds import KINDS, SINGLE, WORDS
from graphcost.hardware import Cluster
from graphcost.registry import did_you_mean

if TYPE_CHECKING:
    import polars as pl


class Checker:
    """What is known of a table so far: rows read, ids met."""

    def __init__(self, source: str, cluster: Cluster) -> None:
        self.source = source
        self.cluster = cluster
        self.rows = 0
        self._hashes: list[NDArray[np.uint64]] = []

    def fail(self, index: int, column: str, value: Any, right: str) -> DataFileError:
        """The error for one cell of the block at hand."""
        shown = "empty" if value is None else repr(value) if isinstance(value, str) else f"{value:.12g}"
        return DataFileError(f"{self.source}: row {self.rows + index + 1}, column {column}: {shown}; write {right}")

    def number(self, frame: pl.DataFrame, name: str) -> Column:
        """A numeric column as float64, NaN where an optional cell is empty."""
        import polars as pl

        column = frame.get_column(name)
        if not (column.dtype.is_numeric() or column.dtype == pl.Null):
            raise DataFileError(f"{self.source}: column {name} holds {column.dtype}; write {ALL_NUMBERS[name]}")
        empty = column.null_count()
        if empty and name not in NULLABLE:
            index = int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise self.fail(index, name, None, ALL_NUMBERS[name])
        values: Column = column.cast(pl.Float64).to_numpy()
        known = values[~column.is_null().to_numpy()] if empty else values
        floor = {"cnodes": 1.0}.get(name, 0.0)
        if len(known) and not (known.min() >= floor and known.max() <= MOST):  # NaN fails both
            wrong = ~((values >= floor) & (values <= MOST))
            if empty:
                wrong &= ~column.is_null().to_numpy()
            self._first(wrong, name, values)
        if name == "cnodes":
            self._first(values != np.floor(values), name, values)
        if name == "batch":
            self._first(values == 0, name, values)
        return values

    def _first(self, wrong: NDArray[np.bool_], name: str, values: Column) -> None:
        if wrong.any():
            index = int(np.argmax(wrong))
            raise self.fail(index, name, float(values[index]), ALL_NUMBERS[name])

    def words(self, words: pl.Series, codes: pl.Series) -> None:
        """Every architecture is known."""
        if not codes.null_count():
            return
        index = int(np.argmax(codes.is_null().to_numpy()))
        word = words[index]
        known = ", ".join(WORDS)
        if word is None:
            raise self.fail(index, ARCH, None, f"one of {known}")
        raise DataFileError(
            f"{self.source}: row {self.rows + index + 1}, column {ARCH}: no architecture named "
            f"{str(word)!r}{did_you_mean(str(word), WORDS)} ({known})"
        )

    def placed(self, kind: NDArray[np.uint8], cnodes: Column, words: pl.Series) -> None:
        """Architectures of one GPU or one server have no more cNodes than that."""
        gpus = self.cluster.server.gpus
        for one in KINDS:
            most = 1 if one is SINGLE else gpus if one.one_server else None
            if most is None:
                continue
            wrong = (kind == one.code) & (cnodes > most)
            if wrong.any():
                index = int(np.argmax(wrong))
                where = "is one GPU" if most == 1 else f"runs inside one server of {self.cluster.id}"
                raise self.fail(index, "cnodes", float(cnodes[index]), f"at most {most}: {words[index]!r} {where}")

    def ids(self, ids: pl.Series) -> None:
        """Every job has an id; its hash is kept for the search for repeated ones."""
        import polars as pl

        if ids.null_count():
            raise self.fail(int(np.argmax(ids.is_null().to_numpy())), ID, None, "an id of the job's own")
        texts = ids.cast(pl.String)
        if ids.dtype == pl.String and (texts == "").any():
            raise self.fail(int(np.argmax((texts == "").to_numpy())), ID, "", "an id of the job's own")
        self._hashes.append(texts.hash().to_numpy())

    def repeated_hashes(self) -> NDArray[np.uint64]:
        """Hashes of ids that occur more than once."""
        hashes = np.concatenate(self._hashes)
        self._hashes.clear()
        hashes.sort()
        return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
