"""Tables of published measurements: one row, one configuration that somebody timed.

Two forms are read: the columns of the project's measured tables (``source, model_id,
framework, phase, ... step_time_ms, comm_time_ms, arch, notes``) and timm's own result
tables, whose GPU, layout, precision and torch version stand in the file's name.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graphcost.errors import ModelFileError


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One measured step; None where the table leaves a figure out.

    ``gpus``: of the whole job. ``batch``: samples of one GPU and micro-batch. ``step_s``:
    seconds of one optimizer step (of one pass in inference). ``comm_s``: seconds that a
    step waits for gradients, where that was timed. ``spread``: over several servers, not
    known how many. ``line`` counts the file's lines.
    """

    table: str
    line: int
    source: str
    model_id: str
    framework: str
    phase: str
    task_input: str
    gpu: str
    gpus: int | None
    servers: int | None
    intra_link: str
    inter_link: str
    precision: str
    batch: float | None
    accumulate: int
    step_s: float | None
    comm_s: float | None
    arch: str
    notes: str = ""
    layout: str = "nchw"
    spread: bool = False


COLUMNS = (
    "source", "model_id", "model", "framework", "phase", "task_input", "gpu", "n_gpus", "n_nodes", "intra_link",
    "inter_link", "precision", "batch_per_gpu", "grad_accum", "global_batch", "throughput", "throughput_unit",
    "step_time_ms", "comm_time_ms", "arch", "notes",
)  # fmt: skip
NEEDED = frozenset({"model_id", "gpu", "step_time_ms", "batch_per_gpu"})

_TIMM_FILE = re.compile(
    r"(?P<phase>train|infer)_(?P<precision>amp|fp32)_(?P<layout>nchw|nhwc)_pt(?P<torch>\d+)_(?P<gpu>\w+)$"
)


def read_table(path: Path) -> tuple[MeasuredRow, ...]:
    """Every row of a CSV file; raises ``ModelFileError`` with the line that cannot be read."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            read = _reader(path, tuple(reader.fieldnames or ()))
            return tuple(read(cells) for cells in _records(path, reader))
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ModelFileError(f"{path}: not a text file in UTF-8") from None
    except csv.Error as error:
        raise ModelFileError(f"{path}: not a CSV file: {error}") from None


def _records(path: Path, reader: csv.DictReader[str]) -> Iterator[_Cells]:
    for record in reader:
        if None in record or None in record.values():
            raise ModelFileError(f"{path}, line {reader.line_num}: another number of cells than the header has")
        yield _Cells(path, reader.line_num, record)


def _reader(path: Path, fields: tuple[str, ...]) -> Callable[[_Cells], MeasuredRow]:
    if "model" in fields and not {"train_step_time", "infer_step_time"}.isdisjoint(fields):
        named = _TIMM_FILE.search(path.stem)
        if named is None:
            raise ModelFileError(
                f"{path}: a timm table keeps timm's name, ..._train_amp_nhwc_pt112_rtx3090.csv: its GPU, layout, "
                "precision and torch version stand there"
            )
        return partial(_timm_row, named.groupdict())
    missing = sorted(NEEDED - set(fields))
    if missing:
        raise ModelFileError(f"{path}: no column {', '.join(missing)}; a table has {', '.join(COLUMNS)}")
    return _row


def _row(cell: _Cells) -> MeasuredRow:
    spread = cell.text("n_nodes") == ">1"
    return MeasuredRow(
        table=cell.path.stem,
        line=cell.line,
        source=cell.text("source"),
        model_id=cell.text("model_id"),
        framework=cell.text("framework"),
        phase=cell.text("phase") or "train",
        task_input=cell.text("task_input"),
        gpu=cell.text("gpu"),
        gpus=cell.count("n_gpus"),
        servers=None if spread else cell.count("n_nodes"),
        spread=spread,
        intra_link=cell.text("intra_link"),
        inter_link=cell.text("inter_link"),
        precision=cell.text("precision"),
        batch=cell.number("batch_per_gpu"),
        accumulate=cell.count("grad_accum") or 1,
        step_s=cell.seconds("step_time_ms"),
        comm_s=cell.seconds("comm_time_ms"),
        arch=cell.text("arch"),
        notes=cell.text("notes"),
    )


def _timm_row(facts: Mapping[str, str], cell: _Cells) -> MeasuredRow:
    phase, version = facts["phase"], facts["torch"]
    size = cell.text(f"{phase}_img_size")
    return MeasuredRow(
        table=cell.path.stem,
        line=cell.line,
        source="huggingface/pytorch-image-models:results",
        model_id=cell.text("model"),
        framework=f"PyTorch {version[0]}.{version[1:].rstrip('0')} (timm)",
        phase=phase,
        task_input=f"{size}x{size}",
        gpu=facts["gpu"],
        gpus=1,
        servers=1,
        intra_link="",
        inter_link="",
        precision=facts["precision"].upper(),
        batch=cell.number(f"{phase}_batch_size"),
        accumulate=1,
        step_s=cell.seconds(f"{phase}_step_time"),
        comm_s=None,
        arch="single",
        layout="channels-last" if facts["layout"] == "nhwc" else "nchw",
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """Typed access to one record, with the file and line in every complaint."""

    path: Path
    line: int
    record: Mapping[str, str]

    def text(self, name: str) -> str:
        return self.record.get(name, "").strip()

    def number(self, name: str) -> float | None:
        text = self.text(name)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0 <= value < float("inf"):
            raise ModelFileError(f"{self.path}, line {self.line}: {name} is {text!r}, not a number of at least 0")
        return value

    def count(self, name: str) -> int | None:
        value = self.number(name)
        if value is None:
            return None
        if value != int(value):
            raise ModelFileError(f"{self.path}, line {self.line}: {name} is {self.text(name)!r}, not a whole number")
        return int(value)

    def seconds(self, name: str) -> float | None:
        value = self.number(name)
        return None if value is None else value / 1e3
