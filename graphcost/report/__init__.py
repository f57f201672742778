"""Reports: one renderer a format, all from ``Analysis``. Only the command line writes them anywhere.

A renderer's module is imported when its format is asked for: commands that write text need
no XML, and start sooner.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.registry import did_you_mean
from graphcost.result import SCHEMA_VERSION, Analysis

if TYPE_CHECKING:
    from graphcost.project.checking import CheckResult

Renderer = Callable[..., str]


def json_report(results: Sequence[Analysis], *, per_op: bool = False, **_: Any) -> str:
    """One result as itself, several under ``results``."""
    if len(results) == 1:
        return results[0].to_json(per_op=per_op)
    data = {"schema_version": SCHEMA_VERSION, "results": [result.to_dict(per_op=per_op) for result in results]}
    return json.dumps(data, indent=2, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Format:
    """One format: of analyses, of a check, and the suffixes that choose it."""

    analyses: Renderer
    check: Renderer
    suffixes: tuple[str, ...] = ()


def _from(module: str, name: str) -> Renderer:
    """A renderer of ``graphcost.report``, imported on use."""

    def render(*arguments: Any, **detail: Any) -> str:
        found: Renderer = getattr(import_module(f"graphcost.report.{module}"), name)
        return found(*arguments, **detail)

    return render


def _results_alone(render: Renderer, *suffixes: str) -> Format:
    """A format that shows a check's analyses and nothing of its baseline."""
    return Format(render, lambda check, **detail: render(check.analyses, **detail), suffixes)


def _of_findings(render: Renderer, *suffixes: str) -> Format:
    """A format that shows findings with their places."""

    def of(judged: str) -> Renderer:
        return lambda results, **_: render(getattr(import_module("graphcost.report.issues"), judged)(results))

    return Format(of("judged_analyses"), of("judged_check"), suffixes)


FORMATS: Mapping[str, Format] = MappingProxyType({
    "text": Format(_from("text", "text_report"), _from("check", "check_text"), (".txt",)),
    "json": Format(json_report, _from("check", "check_json"), (".json",)),
    "markdown": Format(_from("markdown", "markdown_report"), _from("check", "check_markdown"), (".md",)),
    "csv": Format(_from("markdown", "csv_report"), _from("check_tables", "check_csv"), (".csv",)),
    "latex": Format(_from("latex", "latex_report"), _from("check_tables", "check_latex"), (".tex",)),
    "html": Format(_from("page", "html_report"), _from("check_tables", "check_html"), (".html", ".htm")),
    "sarif": _of_findings(_from("sarif", "sarif_text"), ".sarif", ".sarif.json"),
    "junit": _of_findings(_from("junit", "junit_text"), ".xml"),
    "github": _of_findings(_from("annotations", "github_text")),
    "gitlab": _of_findings(_from("annotations", "gitlab_text")),
    "trace": _results_alone(_from("trace", "trace_report"), ".trace", ".trace.json"),
})  # fmt: skip

_SUFFIXES = {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}


def fragment(result: Analysis) -> str:
    """What a notebook shows of one result: light HTML without a script."""
    return _from("page", "fragment")(result)


def render(results: Sequence[Analysis], form: str, **detail: Any) -> str:
    """``results`` in one of ``FORMATS``; ``detail``: width, top, per_op, by."""
    return _format(form).analyses(results, **detail)


def render_check(check: CheckResult, form: str, **detail: Any) -> str:
    """A check in one of ``FORMATS``."""
    return _format(form).check(check, **detail)


def _format(form: str) -> Format:
    if form not in FORMATS:
        raise UsageError(f"no report format named {form!r}{did_you_mean(form, FORMATS)} ({', '.join(FORMATS)})")
    return FORMATS[form]


def split_output(output: str, formats: Collection[str] = FORMATS) -> tuple[str, str]:
    """(format, file) of an ``--output``: named as ``gitlab:report.json``, else by the file's suffix.

    >>> split_output("gitlab:report.json"), split_output("report.sarif")
    (('gitlab', 'report.json'), ('sarif', 'report.sarif'))
    """
    form, colon, file = output.partition(":")
    if colon and file and form in formats:
        return form, file
    path = PurePath(output.lower())
    known = {suffix: name for suffix, name in _SUFFIXES.items() if name in formats}
    suffix = "".join(path.suffixes[-2:])
    suffix = suffix if suffix in known else path.suffix
    if suffix not in known:
        raise UsageError(
            f"--output {output}: no format for suffix {suffix!r} (known: {', '.join(known)}); "
            f"a format can be named before the file: {next(iter(formats))}:{PurePath(output).name}"
        )
    return known[suffix], output
