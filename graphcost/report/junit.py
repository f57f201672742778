"""JUnit XML: a suite a model, a case for everything that was judged. Source: the Jenkins xUnit plugin's schema."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from graphcost.report.issues import Issue, Judged

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def junit_text(models: Sequence[Judged]) -> str:
    """Errors fail their case, warnings and notes are its output, what is ignored is skipped."""
    root = ET.Element("testsuites", name="graphcost")
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for model in models:
        suite = ET.SubElement(root, "testsuite", name=_clean(model.name))
        if model.error is not None:
            case = ET.SubElement(suite, "testcase", classname=_clean(model.name), name="analysis")
            ET.SubElement(case, "error", message=_clean(model.error))
        names = () if model.error is not None and not model.issues else model.judged
        for name in dict.fromkeys((*names, *map(_case_of, model.issues))):
            _case(suite, model, name)
        tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
        counts = {key: len(suite.findall(f"testcase/{tag}")) for key, tag in tags.items()}
        counts["tests"] = len(suite.findall("testcase"))
        for key, count in counts.items():
            suite.set(key, str(count))
            totals[key] += count
    for key, count in totals.items():
        root.set(key, str(count))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, model: Judged, name: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=_clean(model.name), name=_clean(name))
    if model.path:
        case.set("file", _clean(model.path))
    mine = [issue for issue in model.issues if _case_of(issue) == name]
    failing = [issue for issue in mine if issue.level == "error" and issue.ignored is None]
    ignored = [issue for issue in mine if issue.ignored is not None]
    if failing:
        message = "; ".join(issue.message for issue in failing)
        ET.SubElement(case, "failure", type=failing[0].rule, message=_clean(message))
    elif ignored and len(ignored) == len(mine):
        ET.SubElement(case, "skipped", message=_clean("; ".join(str(issue.ignored) for issue in ignored)))
    said = [f"{issue.level}: {issue.message}" for issue in mine if issue not in failing and issue.ignored is None]
    if said:
        ET.SubElement(case, "system-out").text = _clean("\n".join(said))


def _case_of(issue: Issue) -> str:
    return issue.about if issue.rule in ("budget", "regression") else issue.rule


def _clean(text: str) -> str:
    """Without characters that XML 1.0 cannot hold."""
    return _NOT_XML.sub("?", text)
