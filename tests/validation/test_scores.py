"""Scores: the arithmetic on frames made by hand, and whole runs through the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from validation.helpers_tables import write_table

from graphcost.cli.main import main
from graphcost.validation import read_table, validate
from graphcost.validation.scoring import COLUMNS, score
from graphcost.validation.tolerances import Tolerance, broken

ROW = {
    "table": "t", "framework": "f", "model_id": "m", "task_input": "", "gpu": "g", "precision": "p", "phase": "train",
    "gpus": 1, "servers": 1, "inter_link": "", "arch": "single", "built_arch": "single", "overlap": "", "batch": 8,
    "accumulate": 1, "comm_share": 0.0, "skipped": "",
}  # fmt: skip


def frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    made = pd.DataFrame([{**dict.fromkeys(COLUMNS), **ROW, **row} for row in rows])
    for name in ("step_s", "predicted_s", "low_s", "high_s", "comm_s"):
        made[name] = made[name].astype(float)
    made["error"] = made.predicted_s / made.step_s - 1
    return made


def test_many_rows_of_one_model_count_once() -> None:
    rows = [{"model_id": "often", "step_s": 1.0, "predicted_s": 1.5} for _ in range(99)]
    rows.append({"model_id": "once", "step_s": 1.0, "predicted_s": 0.9})
    found = score("t", frame(rows))
    assert found.median_error == pytest.approx((0.5 + 0.1) / 2)
    assert found.bias == pytest.approx((0.5 - 0.1) / 2)
    assert (found.rows, found.predicted) == (100, 100)


def test_scaling_is_held_against_the_same_job_on_one_gpu() -> None:
    found = score(
        "t",
        frame(
            [
                {"step_s": 1.0, "predicted_s": 2.0},
                {"step_s": 1.25, "predicted_s": 2.2, "gpus": 4, "arch": "dp", "built_arch": "allreduce"},
                {"step_s": 9.0, "predicted_s": 2.2, "gpus": 4, "batch": 16},  # no such job on one GPU
            ]
        ),
    )
    # Efficiency 1/1.25 = 0.8 measured, 2/2.2 = 0.909 predicted.
    assert found.scaling_error_points == pytest.approx(100 * (2 / 2.2 - 0.8))


def test_the_wait_of_one_gpu_is_taken_off() -> None:
    found = score(
        "t",
        frame(
            [
                {"step_s": 1.0, "predicted_s": 1.0, "comm_s": 0.1},
                {"step_s": 1.6, "predicted_s": 1.6, "comm_s": 0.6, "gpus": 2, "comm_share": 0.4},
            ]
        ),
    )
    # wait 0.6 - 0.1 = 0.5; share 0.5 / (1.0 + 0.5) = 1/3
    assert found.comm_share_error_points == pytest.approx(100 * (0.4 - 1 / 3))
    assert found.verdict_accuracy == 1.0


def test_verdicts_have_recall_and_precision() -> None:
    shares = [(0.6, 0.7), (0.4, 0.7), (0.6, 0.2), (0.1, 0.1)]  # predicted, measured
    rows: list[dict[str, Any]] = [{"step_s": 1.0, "predicted_s": 1.0, "comm_s": 0.0}]
    for gpus, (said, true) in enumerate(shares, start=2):
        wait = true / (1 - true)
        rows.append({"step_s": 1 + wait, "predicted_s": 1.0, "comm_s": wait, "gpus": gpus, "comm_share": said})
    found = score("t", frame(rows))
    assert (found.verdict_accuracy, found.verdict_recall, found.verdict_precision) == (2 / 4, 1 / 2, 1 / 2)


def test_only_clear_pairs_ask_for_a_winner() -> None:
    def pair(servers: int, ps_s: float, ring_s: float, ps_said: float, ring_said: float) -> list[dict[str, Any]]:
        same = {"gpus": 8, "servers": servers}
        return [
            {**same, "arch": "PS", "built_arch": "ps", "step_s": ps_s, "predicted_s": ps_said},
            {**same, "arch": "AR", "built_arch": "allreduce", "step_s": ring_s, "predicted_s": ring_said},
        ]

    rows = pair(1, 2.0, 1.0, 1.5, 1.0) + pair(2, 1.0, 2.0, 1.5, 1.0) + pair(3, 1.0, 1.05, 1.0, 9.0)
    assert score("t", frame(rows)).winner_accuracy == 1 / 2


def test_interval_and_skips() -> None:
    found = score(
        "t",
        frame(
            [
                {"step_s": 1.0, "predicted_s": 1.0, "low_s": 0.9, "high_s": 1.1},
                {"step_s": 1.2, "predicted_s": 1.0, "low_s": 0.9, "high_s": 1.1},
                {"step_s": 1.2, "skipped": "no builder"},
            ]
        ),
    )
    assert found.interval_coverage == 1 / 2
    assert (found.rows, found.predicted, found.skipped) == (3, 2, {"no builder": 1})


def test_a_table_without_a_prediction_gives_no_figure() -> None:
    found = score("t", frame([{"step_s": 1.0, "skipped": "no builder"}]))
    assert found.median_error is None and found.interval_coverage is None and found.winner_accuracy is None
    assert broken(found, (Tolerance("median_error", 0.0),)) == ()


def test_limits_from_both_sides() -> None:
    found = score("t", frame([{"step_s": 1.0, "predicted_s": 1.2}, {"step_s": 2.0, "predicted_s": 1.9}]))
    assert found.rank_correlation == pytest.approx(1.0)
    assert broken(found, (Tolerance("rank_correlation", 0.9), Tolerance("p90_error", 0.5))) == ()
    limit = Tolerance("median_error", 0.01)
    assert broken(found, (limit,)) == (limit,)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Rows measured exactly as predicted, and one that nobody can predict."""
    path = write_table(tmp_path / "own.csv", [{}, {"batch_per_gpu": 64}, {"model_id": "tacotron2"}])
    steps = [one for one in validate([path]).frame.predicted_s if one == one]
    rows = [
        {"step_time_ms": 1e3 * steps[0]}, {"batch_per_gpu": 64, "step_time_ms": 1e3 * steps[1]},
        {"model_id": "tacotron2"},
    ]  # fmt: skip
    return write_table(path, rows)


def test_the_command_prints_and_exits_0(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "rows.csv"
    assert main(["validate", str(table), "--format", "json", "--rows", str(lines)]) == 0
    found = json.loads(capsys.readouterr().out)
    (result,) = found["results"]
    assert (result["rows"], result["predicted"], result["skipped"]) == (3, 2, {"no builder": 1})
    assert result["median_error"] == pytest.approx(0.0, abs=1e-9) and result["interval_coverage"] == 1.0
    assert result["scaling_error_points"] is None
    written = pd.read_csv(lines)
    assert len(written) == 3 and list(written.columns) == list(COLUMNS)


def test_a_planted_mistake_exits_1(table: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    from graphcost.validation import jobs

    honest = jobs.load_device
    monkeypatch.setattr(jobs, "load_device", lambda name: _halved(honest(name)))
    assert main(["validate", str(table), "--tolerance", "10%"]) == 1
    assert "out of tolerance: own: median_error" in capsys.readouterr().out
    assert main(["validate", str(table), "--tolerance", "10%", "--exit-zero"]) == 0


def _halved(device: Any) -> Any:
    from dataclasses import replace

    return replace(device, mem_bytes_per_s=device.mem_bytes_per_s / 2)


def test_where_and_sample_choose_rows(table: Path) -> None:
    assert validate([table], where=[("batch", "64")]).overall.rows == 1
    assert validate([table], where=[("model_id", "tacotron2")]).overall.predicted == 0
    drawn = [validate([table], sample=2, seed=seed).frame.line.tolist() for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 2 and len({tuple(one) for one in drawn}) > 1


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["missing.csv"], 3, "missing.csv"),
        (["TABLE", "--where", "gpu"], 2, "COLUMN=VALUE"),
        (["TABLE", "--where", "gpus_=1"], 2, "did you mean"),
        (["TABLE", "--where", "gpu=none"], 2, "no row is left"),
        (["TABLE", "--rows", "/nonexistent/x.csv"], 2, "cannot be written"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], code: int, complaint: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *(str(table) if word == "TABLE" else word for word in arguments), "--quiet"]) == code
    said = capsys.readouterr().err
    assert complaint in said and "Traceback" not in said


def test_a_page_with_a_picture(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(table), "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert "no builder" in page and "Scores by table" in page
    drawn = json.loads(page.partition('id="data">')[2].partition("</script>")[0])["validation"]
    assert len(drawn["points"]) == 2 and drawn["band"] == 0.2


def test_a_folder_is_its_tables(table: Path) -> None:
    from graphcost.validation import tables_in

    (table.parent / "other.csv").write_text("op,gpu\ngemm,T4\n")
    assert tables_in([str(table.parent)]) == [table]
    assert len(read_table(table)) == 3
