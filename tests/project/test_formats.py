"""The formats that other tools read: against their own schemas, parsers and escaping rules."""

from __future__ import annotations

import json
import re
import typing
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from project.helpers_project import BOUND, HEAD, Folder
from test_schema import SCHEMA_FILE, schema_of, whole_schema

from graphcost.project.checking import CheckResult
from graphcost.report import FORMATS, split_output
from graphcost.report.annotations import github_text, gitlab_text
from graphcost.report.issues import Issue, Judged
from graphcost.report.junit import junit_text
from graphcost.report.latex import latex_table
from graphcost.report.sarif import sarif_text
from graphcost.result import SCHEMA_VERSION

SARIF_SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0.schema.json").read_text("utf-8"))
CHECK_SCHEMA = SCHEMA_FILE.with_name("check.schema.json")

MIXED = HEAD + (
    'max-step = {warn = "1ns"}\nmax-memory = "1kB"\n'
    '[[ignore]]\nrule = "budget"\nwhere = "max-memory"\nreason = "it is <what> it is | 100%"\n'
    '[[models]]\nsource = "model.onnx"\n[[models]]\nsource = "zoo:mlp"\n[[models]]\nsource = "gone.onnx"\n'
)


@pytest.fixture
def mixed(folder: Folder) -> Folder:
    """Errors, warnings, notes, an ignored finding, a model that is missing."""
    folder.copy(BOUND, "model.onnx")
    folder.write(MIXED)
    return folder


def check_schema() -> dict[str, Any]:
    one = schema_of(CheckResult)
    one["properties"] = {"schema_version": {"const": SCHEMA_VERSION}, **one["properties"]}
    one["required"] = ["schema_version", *one["required"]]
    model = one["properties"]["models"]["items"]
    model["properties"]["analysis"] = {"anyOf": [whole_schema()["$defs"]["analysis"], {"type": "null"}]}
    model["required"].append("analysis")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "graphcost check --format json"}
    return {**head, **one}


def test_the_shipped_schema_of_a_check_is_that_of_the_types(update_golden: bool) -> None:
    text = json.dumps(check_schema(), indent=1) + "\n"
    if update_golden:
        CHECK_SCHEMA.write_text(text, "utf-8")
    assert CHECK_SCHEMA.read_text("utf-8") == text


def test_json_obeys_its_schema(mixed: Folder) -> None:
    schema = json.loads(CHECK_SCHEMA.read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    mixed.check("--update-baseline")
    for options in ([], ["--baseline", "none.json"]):
        code, out, _ = mixed.check("--format", "json", *options)
        data = json.loads(out)
        validator.validate(data)
        assert code == 3 and data["exit_code"] == 3
        assert [m["status"] for m in data["models"]] == ["fail", "fail", "error"]
    data["models"][0]["statsu"] = 1
    assert not validator.is_valid(data)


def test_every_format_of_a_check_and_of_analyses(mixed: Folder) -> None:
    for form in FORMATS:
        code, out, err = mixed.check("--format", form, "--quiet")
        assert code == 3 and out.strip(), (form, err)
        code, out, err = mixed.run("analyze", "model.onnx", "zoo:mlp", "--gpus", "8", "--format", form, "--exit-zero")
        assert code == 0 and (out.strip() or form == "github"), (form, err)


def test_sarif_is_sarif(mixed: Folder) -> None:
    sarif = json.loads(mixed.check("--format", "sarif")[1])
    jsonschema.Draft4Validator(SARIF_SCHEMA).validate(sarif)
    (run,) = sarif["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {"communication-share", "does-not-fit", "regression", "budget", "unknown-operator"} <= set(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        expected = "model.onnx" if result["message"]["text"].startswith("model.onnx") else "graphcost.toml"
        assert place["artifactLocation"] == {"uri": expected, "uriBaseId": "%SRCROOT%"}
    in_config = [r for r in run["results"] if r["message"]["text"].startswith("zoo:mlp")]
    lines = MIXED.splitlines()
    assert {lines[r["locations"][0]["physicalLocation"]["region"]["startLine"] - 1] for r in in_config} == {
        'source = "zoo:mlp"'
    }
    ignored = [r for r in run["results"] if "suppressions" in r]
    assert {r["suppressions"][0]["justification"] for r in ignored} == {"it is <what> it is | 100%"}
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "gone.onnx: no such file" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    jsonschema.Draft4Validator(SARIF_SCHEMA).validate(
        json.loads(mixed.run("analyze", "model.onnx", "zoo:mlp", "--format", "sarif")[1])
    )


def test_fingerprints_outlive_the_numbers(mixed: Folder) -> None:
    def prints() -> list[str]:
        run = json.loads(mixed.check("--format", "sarif")[1])["runs"][0]
        return [result["partialFingerprints"]["graphcost/v1"] for result in run["results"]]

    first = prints()
    mixed.write(MIXED.replace("batch = 64", "batch = 48"))
    assert prints() == first and len(set(first)) == len(first)


def test_junit_counts_what_it_holds(mixed: Folder) -> None:
    root = ET.fromstring(mixed.check("--format", "junit")[1])
    assert root.tag == "testsuites"
    for node in (root, *root):
        for key, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            assert int(node.get(key, "")) == len(node.findall(f".//testcase/{tag}"))
        assert int(node.get("tests", "")) == len(node.findall(".//testcase"))
    model, mlp, gone = root
    cases = {case.get("name"): [child.tag for child in case] for case in model}
    assert cases == {
        "communication-share": ["failure"], "does-not-fit": [], "unknown-operator": [],
        "max-step": ["system-out"], "max-memory": ["skipped"],
    }  # fmt: skip
    assert [case.get("name") for case in gone] == ["analysis"] and gone[0][0].tag == "error"
    assert mlp.get("name") == "zoo:mlp"


def issue(**changes: Any) -> Issue:
    fields = {
        "rule": "budget", "level": "error", "message": "m", "model": "net", "about": "max-step", "path": "a.py",
        "line": 4, "operator": "", "fingerprint": "f", "ignored": None, **changes,
    }  # fmt: skip
    return Issue(**typing.cast(Any, fields))


def judged(*issues: Issue, **changes: Any) -> Judged:
    fields = {"name": "net", "path": "a.py", "line": None, "judged": (), "error": None, "exit_code": 0, **changes}
    return Judged(issues=issues, **typing.cast(Any, fields))


def test_github_commands_are_escaped() -> None:
    # actions/toolkit, command.ts: data escapes % CR LF, properties : and , too
    text = github_text([judged(issue(message="5 %: a, b\nc\r", path="a,b:c.py", model="n:m"))])
    assert text == (
        "::error file=a%2Cb%3Ac.py,line=4,title=graphcost budget%3A n%3Am::5 %25: a, b%0Ac%0D\n"
    )  # fmt: skip
    assert github_text([judged(issue(ignored="why"))]) == ""
    assert github_text([judged(issue(level="note", path="", line=None))]).startswith("::notice title=")
    assert github_text([judged(error="gone")]) == "::error file=a.py,title=graphcost%3A net::gone\n"


def test_gitlab_has_what_its_page_asks_for(mixed: Folder) -> None:
    entries = json.loads(mixed.check("--format", "gitlab")[1])
    for entry in entries:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert entry["location"]["path"] in {"model.onnx", "graphcost.toml"}
        assert entry["location"]["lines"]["begin"] >= 1
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
    assert json.loads(gitlab_text([judged(issue(ignored="x"))])) == []


def test_hostile_names_break_no_format() -> None:
    bad = 'a<b>&"\x00\x1b|`*_\u2028'
    models = [judged(issue(message=bad, model=bad, path=bad, about=bad), name=bad)]
    root = ET.fromstring(junit_text(models))
    assert root[0].get("name") == bad.replace("\x00", "?").replace("\x1b", "?")
    jsonschema.Draft4Validator(SARIF_SCHEMA).validate(json.loads(sarif_text(models)))
    assert len(github_text(models).split("\n")) == 2


def test_a_comment_has_no_html_of_a_models(mixed: Folder) -> None:
    _, out, _ = mixed.check("--format", "markdown")
    assert "it is &lt;what&gt; it is | 100%" in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7}
    assert re.findall("<(?!!--)[^>]+>", out) == []


def test_latex() -> None:
    table = latex_table(["model", "share"], [["a_b & c", "5 %"]])
    assert r"a\_b \& c & 5 \% \\" in table and r"\begin{tabular}{lr}" in table


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("r.md", ("markdown", "r.md")), ("r.SARIF", ("sarif", "r.SARIF")),
        ("r.sarif.json", ("sarif", "r.sarif.json")),
        ("r.xml", ("junit", "r.xml")), ("r.tex", ("latex", "r.tex")), ("r.trace.json", ("trace", "r.trace.json")),
        ("gitlab:gl-code-quality.json", ("gitlab", "gl-code-quality.json")), ("github:notes", ("github", "notes")),
        ("json:r.txt", ("json", "r.txt")), ("v1.2.json", ("json", "v1.2.json")),
    ],
)  # fmt: skip
def test_outputs_choose_their_format(output: str, expected: tuple[str, str]) -> None:
    assert split_output(output) == expected


def test_several_outputs_at_once(mixed: Folder) -> None:
    names = ["r.html", "r.sarif", "r.xml", "r.csv", "r.tex", "r.md", "r.json", "gitlab:q.json", "github:notes.txt"]
    code, out, _ = mixed.check(*(word for name in names for word in ("--output", name)))
    assert (code, out) == (3, "")
    for name in names:
        assert (mixed.path / split_output(name)[1]).stat().st_size > 0
    code, _, err = mixed.check("--output", "r.yaml")
    assert code == 2 and "a format can be named before the file: text:r.yaml" in err
