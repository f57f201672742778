"""``graphcost fleet`` as its users meet it: files, exit codes, one clear line, JSON by its schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fleet_tables import CASES, COLUMNS, csv, frame, pl, write
from test_schema import schema_of

from graphcost.cli.main import main
from graphcost.fleet.result import AssumptionStudy, Characterization, Projection, Sweep
from graphcost.result import SCHEMA_VERSION

SCHEMA_FILE = Path(__file__).parents[2] / "graphcost" / "report" / "fleet.schema.json"
GOOD = "a,ps,8,32,1e6,1e12,1e10,1e9,0"
HEADER = ",".join(COLUMNS)


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["fleet", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def error_of(err: str) -> str:
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("graphcost: error: ")]
    return line


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("b,ps,8,32,-1,1e12,1e10,1e9,0", "row 2, column input_bytes: -1; write bytes copied"),
        ("b,ps,8,32,1e6,nan,1e10,1e9,0", "row 2, column flops: nan; write FLOPs"),
        ("b,ps,8,32,1e6,inf,1e10,1e9,0", "row 2, column flops: inf"),
        ("b,ps,8,32,1e6,1e12,many,1e9,0", "row 2, column mem_bytes: 'many'; write bytes"),
        ("b,ps,8,32,1e6,1e12,,1e9,0", "row 2, column mem_bytes: empty; write bytes"),
        (
            "b,ps,0,32,1e6,1e12,1e10,1e9,0",
            "row 2, column cnodes: 0; write the number of cNodes, a whole",
        ),
        ("b,ps,2.5,32,1e6,1e12,1e10,1e9,0", "row 2, column cnodes: 2.5; write the number"),
        ("b,ps,8,0,1e6,1e12,1e10,1e9,0", "row 2, column batch: 0; write samples"),
        ("b,alreduce,8,32,1e6,1e12,1e10,1e9,0", "no architecture named 'alreduce'; did you mean 'allreduce'?"),
        ("b,,8,32,1e6,1e12,1e10,1e9,0", "row 2, column arch: empty; write one of"),
        ("b,single,2,32,1e6,1e12,1e10,1e9,0", "row 2, column cnodes: 2; write at most 1: 'single' is one GPU"),
        ("b,local,9,32,1e6,1e12,1e10,1e9,0", "at most 8: 'local' runs inside one server of pai-paper-base"),
        ("a,ps,8,32,1e6,1e12,1e10,1e9,0", "row 2, column job_id: 'a' is in row 1 too"),
        (",ps,8,32,1e6,1e12,1e10,1e9,0", "row 2, column job_id: empty"),
        ("b,ps,8,32,1e6,1e12,1e10,1e9,0,7", "row 2 has 10 cells and the header 9"),
        ("b,ps,8,32,1e30,1e12,1e10,1e9,0", "row 2, column input_bytes: 1e+30"),
    ],
)
@pytest.mark.parametrize("command", ["characterize", "project", "sweep"])
def test_a_wrong_cell_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, row: str, says: str
) -> None:
    source = csv(tmp_path / "jobs.csv", GOOD, row)
    code, out, err = run(capsys, command, source)
    line = error_of(err)
    assert code == 3 and out == "" and str(source) in line and says in line, line


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("jobs.csv", b"", "is empty; a job table begins with the columns job_id, arch"),
        ("jobs.csv", b" \n\n", "is empty"),
        ("jobs.csv", HEADER.encode(), "has a header and no jobs"),
        ("jobs.csv", HEADER.replace("flops", "flop").encode() + b"\n", "no column flops; is it called 'flop'?"),
        ("jobs.csv", b"a;b\n1;2\n", "no column job_id, arch"),
        ("jobs.csv", f"{HEADER}\n{GOOD}\n\xff\xfe{GOOD[1:]}\n".encode("latin-1"), "UTF-8"),
        ("jobs.parquet", HEADER.encode(), "is not Parquet, whatever its name says"),
        ("jobs.csv", bytes(range(256)) * 8, "neither CSV nor Parquet"),
        ("jobs.csv", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "LFS pointer"),
        ("jobs.parquet", b"PAR1" + bytes(64), "not a readable Parquet file"),
    ],
)
def test_files_that_are_no_tables(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    code, _, err = run(capsys, "characterize", tmp_path / name)
    assert code == 3 and says in error_of(err), err


def test_a_truncated_parquet_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = Path(write(tmp_path / "jobs.parquet", CASES)).read_bytes()
    for size in (len(whole) // 2, len(whole) - 1, len(whole) - 8, 5):
        (tmp_path / "cut.parquet").write_bytes(whole[:size])
        code, _, err = run(capsys, "characterize", tmp_path / "cut.parquet")
        assert code == 3 and "truncated or damaged" in error_of(err), (size, err)


def test_a_folder_a_missing_file_and_a_column_of_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "is a folder" in error_of(run(capsys, "characterize", tmp_path)[2])
    code, _, err = run(capsys, "characterize", tmp_path / "none.csv")
    assert code == 3 and "cannot be read (No such file or directory)" in error_of(err)
    text = frame(CASES).with_columns(pl.col("flops").cast(pl.String))
    text.write_parquet(tmp_path / "text.parquet")
    code, _, err = run(capsys, "characterize", tmp_path / "text.parquet")
    assert code == 3 and "column flops holds String; write FLOPs" in error_of(err)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("characterise",), "no fleet command named 'characterise'; did you mean 'characterize'?"),
        (("project", "FILE", "--to", "alreduce-local"), "did you mean 'allreduce-local'?"),
        (("characterize", "FILE", "--cluster", "pai-paper-bas"), "did you mean 'pai-paper-base'?"),
        (("characterize", "FILE", "--profile", "papr"), "did you mean 'paper'?"),
        (("characterize", "FILE", "--input-sharing", "0"), "at least one cNode"),
        (("characterize", "FILE", "--output", "jobs.xlsx"), "jobs are written as .parquet or .csv"),
        (("characterize", "FILE", "--output", "FILE"), "is the table itself"),
        (("characterize", "FILE", "--output", "/no/such/folder/x.csv"), "cannot be written"),
        (("characterize", "FILE", "--output", "/no/such/folder/x.parquet"), "cannot be written"),
        (("sweep", "FILE", "--sensitivity", "--profile", "calibrated"), "use paper"),
        (("generate", "--count", "0", "--output", "x.csv"), "--count 0: between 1"),
        (("generate", "--count", "5", "--seed", "-1", "--output", "x.csv"), "--seed -1"),
    ],
)
def test_usage_errors(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    source = write(tmp_path / "jobs.csv", CASES)
    code, _, err = run(capsys, *(source if word == "FILE" else word for word in arguments))
    assert code == 2 and says in error_of(err), err


def test_a_failed_run_leaves_no_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = csv(tmp_path / "jobs.csv", GOOD, GOOD)  # one id twice, which is found at the end
    for name in ("out.csv", "out.parquet"):
        (tmp_path / name).write_text("before")
        code, _, err = run(capsys, "characterize", source, "--output", tmp_path / name)
        assert code == 3 and "is in row 1 too" in error_of(err)
        assert (tmp_path / name).read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "out.csv", "out.parquet"]


def test_nothing_is_dropped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Columns of the user's own are said and carried along, ids like comments and quoted commas are kept."""
    source = csv(tmp_path / "jobs.csv", f"#1{GOOD[1:]},x", f'"b,c"{GOOD[1:]},y', header=f"{HEADER},gpu_hour")
    out = tmp_path / "out.csv"
    code, _, err = run(capsys, "characterize", source, "--output", out)
    assert code == 0 and "column 'gpu_hour' is not used; did you mean 'gpu_hours'?" in err
    read = pl.read_csv(out)
    assert read["job_id"].to_list() == ["#1", "b,c"] and read["gpu_hour"].to_list() == ["x", "y"]
    assert read["step_s"].to_list() == pytest.approx(
        [1e6 / 7e9 + 1e12 / 7.7e12 + 1e10 / 7e11 + 1e9 / (0.7 * 3.125e9) + 1e9 / 7e9] * 2
    )


def test_csv_and_parquet_give_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    texts = []
    for suffix in (".csv", ".parquet"):
        code, out, _ = run(capsys, "characterize", write(tmp_path / f"jobs{suffix}", CASES), "--format", "json")
        assert code == 0
        texts.append({**json.loads(out), "table": None})
    assert texts[0] == texts[1]


def whole_schema() -> dict[str, Any]:
    results = {
        "characterize": Characterization, "project": Projection, "sweep": Sweep, "sensitivity": AssumptionStudy,
    }  # fmt: skip
    made = {}
    for name, kind in results.items():
        one = schema_of(kind)
        one["properties"] = {"schema_version": {"const": SCHEMA_VERSION}, **one["properties"]}
        one["required"] = ["schema_version", *one["required"]]
        made[name] = one
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "graphcost fleet --format json",
        "$defs": made,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in made],
    }


def test_the_shipped_schema_is_that_of_the_types(update_golden: bool) -> None:
    text = json.dumps(whole_schema(), indent=1) + "\n"
    if update_golden:
        SCHEMA_FILE.write_text(text, "utf-8")
    assert SCHEMA_FILE.read_text("utf-8") == text


@pytest.mark.parametrize("profile", ["paper", "calibrated"])
@pytest.mark.parametrize("words", [("characterize",), ("project",), ("sweep",), ("sweep", "--sensitivity")])
def test_real_output_obeys_the_schema(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], profile: str
) -> None:
    if "--sensitivity" in words and profile == "calibrated":
        return
    source = write(tmp_path / "jobs.csv", CASES)
    code, out, _ = run(capsys, words[0], source, *words[1:], "--format", "json", "--profile", profile)
    assert code == 0
    document = json.loads(out)
    schema = json.loads(SCHEMA_FILE.read_text("utf-8"))
    jsonschema.validate(document, schema)
    document["hardware"]["gpus"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    code, text, _ = run(capsys, words[0], source, *words[1:], "--profile", profile)
    assert code == 0 and "7 jobs, 49 cNodes" in text


def test_polars_is_an_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = write(tmp_path / "jobs.csv", CASES)
    monkeypatch.setitem(sys.modules, "polars", None)
    code, _, err = run(capsys, "characterize", source)
    assert code == 2 and "pip install 'graphcost[fleet]'" in error_of(err)
