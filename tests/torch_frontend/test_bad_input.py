"""What a new user gets wrong: one line that says what, and the contract's exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphcost.cli.main import main

pytest.importorskip("torch", reason="torch is an extra")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

SCRIPT = """
import sys
import torch

LAYER = torch.nn.Linear(8, 4)

def needs(width):
    return torch.nn.Linear(width, 4)

def nothing():
    return None

def three():
    return LAYER, torch.zeros(3, 8), 7

def number():
    return LAYER, 5

def misfit():
    return LAYER, (torch.zeros(3, 7),)

def leaves():
    sys.exit(0)

class Sized(torch.nn.Module):
    def forward(self, x):
        return torch.zeros(int(x.sum().item())) + 1

def sized():
    return Sized(), (torch.zeros(3, 8),)

class Chosen(torch.nn.Module):
    def forward(self, x):
        return LAYER(x[x[:, 0] > 0])

def chosen():
    return Chosen(), (torch.zeros(3, 8),)
"""

FILES = {
    "net.py": SCRIPT,
    "absent.py": "import nosuchmodule",
    "syntax.py": "def f(:",
    "leaves.py": "import sys; sys.exit(0)",
    "cut.pt2": "PK cut",
    "weights.pt": "",
    "cut.json": "{",
    "list.json": "[1]",
    "kind.json": json.dumps({"model_type": "bertt"}),
    "type.json": json.dumps({"model_type": "bert", "hidden_size": "wide"}),
    "heads.json": json.dumps({"model_type": "bert", "hidden_size": 10, "num_attention_heads": 3}),
}

CASES = {
    "net.py:needs": (3, "TypeError: needs() missing 1 required positional argument: 'width'"),
    "net.py:nothing": (3, "the callable returned NoneType; return (torch module, example inputs) or a Keras model"),
    "net.py:three": (3, "the callable returned tuple; return (torch module, example inputs)"),
    "net.py:number": (
        2,
        "example inputs are a tensor, a tuple of arguments or a mapping of keyword arguments, not int",
    ),
    "net.py:misfit": (3, "a and b must have same reduction dim, but got [3, 7] X [8, 4]"),
    "net.py:leaves": (3, "the callable raised SystemExit: 0"),
    "net.py:Chosen": (2, "a torch module needs example inputs"),
    "net.py:sized": (3, "data-dependent"),
    "net.py:nosuch": (2, "has no 'nosuch'"),
    "net.py:": (2, "names no callable; write net.py:FUNCTION"),
    "net.py": (2, "a Python file; name the callable that returns the model: net.py:FUNCTION"),
    "missing.py:f": (3, "no file missing.py"),
    "absent.py:f": (2, "No module named 'nosuchmodule'"),
    "no.such.module:f": (2, "cannot import no.such.module"),
    "syntax.py:f": (3, "SyntaxError"),
    "leaves.py:f": (3, "SystemExit: 0"),
    "cut.pt2": (3, "not a readable torch.export archive"),
    "weights.pt": (3, "never opened; save the model with torch.export.save as .pt2, export it to ONNX"),
    "missing.pt": (3, "no such file"),
    "transformers:cut.json": (3, "no transformers configuration"),
    "transformers:list.json": (3, "no transformers configuration"),
    "transformers:kind.json": (3, "no model_type 'bertt'; did you mean 'bert'?"),
    "transformers:type.json": (3, "Field 'hidden_size' expected int"),
    "transformers:heads.json": (3, "hidden size (10) is not a multiple of the number of attention heads (3)"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("source", CASES)
def test_one_line_and_the_exit_code(source: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, says = CASES[source]
    if source.startswith("transformers:"):
        pytest.importorskip("transformers", reason="transformers is an extra")
    assert main(["count", source, "--quiet"]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert says in err and err.startswith("graphcost: error: ") and err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_sizes_that_depend_on_data_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "net.py:chosen", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any("depends on data" in note for note in found["model"]["notes"])
    assert {each["op_type"] for each in found["graph"]["coverage"]["unknown"]} >= {"torch.aten.linear"}


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from graphcost.cli.main import main
sys.exit(main(["count", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("source", ["net.py:chosen", "timm:resnet50", "transformers:kind.json"])
def test_without_torch_the_extra_is_named(folder: Path, source: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, source], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 2
    assert "pip install 'graphcost[torch]'" in done.stderr and "Traceback" not in done.stderr
