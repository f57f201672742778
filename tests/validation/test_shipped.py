"""The shipped table of published measurements stays within its tolerances, and a planted mistake does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphcost.cli.main import main
from graphcost.hardware import Device
from graphcost.validation import jobs, read_table, tables_in, validate

MEASURED = Path(__file__).parents[2] / "benchmarks" / "measured"
TABLES = [path for path in tables_in([]) if not path.name.startswith("timm")]


def test_every_row_names_its_source_and_can_be_read() -> None:
    rows = [row for path in tables_in([str(MEASURED)]) for row in read_table(path)]
    assert len(rows) > 2000 and all(row.source and row.step_s for row in rows)


@pytest.mark.slow
def test_within_tolerance(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *map(str, TABLES), "--quiet"]) == 0, capsys.readouterr().out


def test_half_the_bandwidth_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: every card's memory and products at half their rate."""
    tables = [path for path in TABLES if path.stem in ("nvidia_dle_train", "dlperf_v100")]
    where = [("model_id", "resnet50")]
    assert validate(tables, where=where).broken == ()
    honest = jobs.load_device

    def halved(name: str) -> Device:
        device = honest(name)
        return replace(device, mem_bytes_per_s=device.mem_bytes_per_s / 2)

    monkeypatch.setattr(jobs, "load_device", halved)
    assert validate(tables, where=where).broken


def test_without_a_table_the_shipped_ones_are_meant() -> None:
    assert [path.name for path in tables_in([])] == [path.name for path in tables_in([str(MEASURED)])]
