"""The configuration: where it is found, what each mistake says, and the schema that editors are given."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import jsonschema
import pytest
from project.helpers_project import Folder

from graphcost.cli.analyze import command as analyze
from graphcost.cli.check import _NOT_KEYS, vocabulary
from graphcost.project.config import read
from graphcost.project.lines import line_of
from graphcost.project.schema import config_schema

MLP = '[[models]]\nsource = "zoo:mlp"\n'


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("gpus = \n" + MLP, 3, "graphcost.toml:1: not TOML: Invalid value (column 8)"),
        ("gpu = 8\n" + MLP, 3, "graphcost.toml:1: no key named 'gpu'; did you mean 'gpus'?"),
        (MLP + "bath = 8\n", 3, "graphcost.toml:3: no key named 'bath'; did you mean 'batch'?"),
        ('gpus = "many"\n' + MLP, 3, "graphcost.toml:1: 'many' is not a whole number"),
        ("recompute = 1\n" + MLP, 3, "graphcost.toml:1: 1 is not true or false"),
        ('network = "25"\n' + MLP, 3, "graphcost.toml:1: --network '25' is not a bandwidth; write it like 25Gb/s"),
        ('on-doubt = "worry"\n' + MLP, 3, "graphcost.toml:1: 'worry'"),
        ('arch = "alreduce"\ngpus = 8\n' + MLP, 2, "graphcost.toml:3: zoo:mlp: no architecture named 'alreduce'"),
        ('cluster = "dgx-a10"\n' + MLP, 2, "no cluster named 'dgx-a10'; did you mean 'dgx-a100'?"),
        ('max-step = "10"\n' + MLP, 3, "graphcost.toml:1: max-step: '10' is not a time; write it like 120ms"),
        ('max-step = "+x%"\n' + MLP, 3, "max-step: 'x%' is not a growth"),
        ('max-params = {wrn = "3M"}\n' + MLP, 3, "max-params: 'wrn': a table of limits has the keys warn, fail"),
        ('max-comm-share = "140%"\n' + MLP, 3, "between 0% and 100%"),
        ("gpus = 8\n", 3, "graphcost.toml: no models; add [[models]] with a source"),
        ("[[models]]\nbatch = 3\n", 3, "graphcost.toml:1: a model needs a source"),
        (MLP + MLP, 3, "graphcost.toml:4: two models are named 'zoo:mlp'"),
        ('[[models]]\nsource = "export/*.onnx"\n', 3, "graphcost.toml:2: export/*.onnx: no file matches"),
        ('[levels]\nbugdet = "warn"\n' + MLP, 3, "graphcost.toml:2: no key named 'bugdet'; did you mean 'budget'?"),
        ('[levels]\nbudget = "wran"\n' + MLP, 3, "graphcost.toml:2: 'wran'; did you mean 'warn'? (fail, warn, pass)"),
        ('[[ignore]]\nrule = "budget"\n' + MLP, 3, "graphcost.toml:1: an ignored finding needs a reason"),
        ('[[ignore]]\nreason = "x"\n' + MLP, 3, "name the rule that is ignored"),
        ('[[ignore]]\nrule = "budget"\nreason = "x"\nexpires = "soon"\n' + MLP, 3, "toml:4: 'soon' is not a date"),
        ("workers = 0\n" + MLP, 3, "graphcost.toml:1: 0: at least one"),
        ('models = "zoo:mlp"\n', 3, "graphcost.toml:1: 'zoo:mlp' is not an array of tables"),
        (MLP + "dim = {seq = \"x\"}\n", 2, "'x' is not a whole number"),
    ],
)  # fmt: skip
def test_every_mistake_is_one_line_with_its_place(folder: Folder, text: str, code: int, says: str) -> None:
    folder.write(text)
    found, out, err = folder.check()
    assert (found, out) == (code, "")
    assert says in err and err.count("graphcost: error: ") == 1 and len(err.splitlines()) == 1


def test_it_is_found_upward_and_graphcost_toml_goes_first(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = folder.check()
    assert code == 3 and "no configuration: neither graphcost.toml nor a pyproject.toml with [tool.graphcost]" in err
    folder.write("[tool.other]\nx = 1\n", "a/b/pyproject.toml")
    folder.write('[tool.graphcost]\n[[tool.graphcost.models]]\nsource = "zoo:mlp"\n', "a/pyproject.toml")
    monkeypatch.chdir(folder.path / "a" / "b")
    code, out, _ = folder.check("--format", "json")
    assert code == 0 and json.loads(out)["config"] == "../pyproject.toml"
    folder.write("[tool.graphcost]\ngpsu = 2\n", "a/pyproject.toml")
    assert "pyproject.toml:2: no key named 'gpsu'" in folder.check()[2]
    folder.write(MLP, "a/graphcost.toml")
    assert json.loads(folder.check("--format", "json")[1])["config"] == "../graphcost.toml"
    assert "nothing.toml: no such file" in folder.check("--config", "nothing.toml")[2]


def test_a_models_keys_go_before_the_projects(folder: Folder) -> None:
    folder.write(
        'gpus = 8\nbatch = 4\nmax-step = "1h"\nmax-comm-share = "30%"\nfreeze = ["a*"]\n'
        '[[models]]\nsource = "zoo:mlp"\nbatch = 16\nmax-step = "2h"\n'
        '[[models]]\nsource = "zoo:bert-base"\nname = "bert"\ndim = {seq = 64}\nfreeze = []\n'
    )  # fmt: skip
    mlp, bert = read(folder.path / "graphcost.toml", vocabulary()).entries
    assert (mlp.options.gpus, mlp.options.load.batch, mlp.budgets[0].limit) == (8, 16, 7200)
    assert (bert.options.gpus, bert.options.load.batch, bert.options.load.dims) == (8, 4, {"seq": 64})
    assert (mlp.options.max_comm_share, mlp.options.freeze, bert.options.freeze) == (0.3, ("a*",), ())
    assert (mlp.line, bert.line, bert.name) == (7, 11, "bert")


def test_every_option_of_analyze_is_a_key() -> None:
    names = {key.name for key in vocabulary().keys}
    options = {p.opts[0].removeprefix("--") for p in analyze.params if p.name not in {*_NOT_KEYS, "models"}}
    assert names == options and {"gpus", "cluster", "precision", "dim", "strict", "on-doubt", "max-batch"} <= names


GOOD = """
gpus = 8
network = "25Gb/s"
max-comm-share = { warn = "30%", fail = "50%" }
max-step = ["120ms", "+5%"]
max-params = 3e7
[levels]
does-not-fit = "fail"
[[ignore]]
rule = "budget"
reason = "old"
expires = "2031-01-01"
[[models]]
source = "zoo:mlp"
dim = { seq = 128 }
"""


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"gpsu": 8}, False),
        ({"gpus": "8"}, False),
        ({"max-step": {"warn": "1s", "fial": "2s"}}, False),
        ({"levels": {"budget": "maybe"}}, False),
        ({"models": [{"batch": 2}]}, False),
        ({"ignore": [{"rule": "budget"}]}, False),
    ],
)
def test_the_schema_takes_what_the_reader_takes(folder: Folder, change: dict[str, Any], valid: bool) -> None:
    schema = json.loads(folder.check("--print-schema")[1])
    assert schema == config_schema(vocabulary())
    jsonschema.Draft7Validator.check_schema(schema)
    data = {**tomllib.loads(GOOD), **change}
    assert jsonschema.Draft7Validator(schema).is_valid(data) is valid


def test_what_the_schema_takes_is_read(folder: Folder) -> None:
    folder.write(GOOD.replace("dim = { seq = 128 }", ""))
    code, _, err = folder.check()
    assert code == 0, err


def test_lines_of_keys() -> None:
    text = 'a.b = 1\n# c = 2\n[t]\nc = 2\n[[t.m]]\nx = 1\n[t.m.sub]\ny = 2\n[[t.m]]\n"z" = 3\n'
    wanted = {("a", "b"): 1, ("t", "c"): 4, ("t", "m", 0, "x"): 6, ("t", "m", 0, "sub", "y"): 8,
              ("t", "m", 1, "z"): 10, ("t", "m", 1, "gone"): 9, ("none",): None}  # fmt: skip
    assert {path: line_of(text, path) for path in wanted} == wanted
