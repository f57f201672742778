"""``graphcost check``: every model of the project against its budgets and baseline."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.analyze import command as analyze
from graphcost.cli.completing import examples
from graphcost.cli.output import (
    checked_outputs,
    progress_bars,
    say,
    text_width,
    working_on,
    write_result,
    write_results,
)
from graphcost.errors import UsageError
from graphcost.many import available_workers
from graphcost.project.checking import CheckOptions, check_project
from graphcost.project.config import find, read
from graphcost.project.keys import Key, Kind, Vocabulary
from graphcost.project.schema import config_schema
from graphcost.report import render_check

_NOT_KEYS = frozenset({
    "form", "outputs", "top", "per_op", "by", "symbolic", "plot", "workers", "backend", "exit_zero", "quiet", "debug",
    "max_comm_share",
})  # fmt: skip
"""Options of ``analyze`` that say how it reports, not what is analysed; max-comm-share is a budget as well."""

_KINDS: Mapping[str, Kind] = {"integer": Kind.INTEGER, "integer range": Kind.INTEGER, "float": Kind.NUMBER,
                              "quantity": Kind.QUANTITY}  # fmt: skip
_PAIRED = ("dims", "input_shapes", "input_values")


@click.command(
    "check",
    epilog=examples(
        "graphcost check",
        "graphcost check --update-baseline",
        "graphcost check --against origin/main --output comment.md --output results.sarif",
    ),
)
@click.argument("models", metavar="[MODEL...]", nargs=-1)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Default: found upward from here.")
@click.option("--against", metavar="REF", help="Compare with where HEAD left this git revision, e.g. origin/main.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Compare with this baseline file.")
@click.option("--update-baseline", is_flag=True, help="Write today's numbers to the baseline.")
@click.option("--print-schema", is_flag=True, help="Print the JSON Schema of the configuration, for editors.")
@shared.format_options
@click.option("--workers", type=click.IntRange(1), help="Models analysed at once (default: processors, for over 3).")
@shared.backend_option
@click.option("--exit-zero", is_flag=True, help="Findings do not fail (turns exit 1 into 0).")
@shared.shared_flags
def command(
    models: tuple[str, ...],
    config: Path | None,
    against: str | None,
    baseline: Path | None,
    update_baseline: bool,
    print_schema: bool,
    form: str,
    outputs: tuple[str, ...],
    workers: int | None,
    backend: str,
    exit_zero: bool,
    quiet: bool,
    debug: bool,
) -> int:
    """Check every model of graphcost.toml, or of [tool.graphcost] in pyproject.toml (or only MODELs, by name).

    Exit 1 when a budget is broken, a model is flagged, or growth against the baseline or
    revision is over what is allowed.
    """
    known = vocabulary()
    if print_schema:
        write_result(json.dumps(config_schema(known), indent=2))
        return 0
    if against is not None and (update_baseline or baseline is not None):
        raise UsageError("--against compares with a revision: leave out --baseline and --update-baseline")
    files = checked_outputs(outputs)
    found = Path(os.path.relpath(config if config is not None else find(Path.cwd())))
    project = read(found, known)
    count = len(models) or len(project.entries)
    with (
        _outside_a_git_hook(),
        progress_bars(quiet=quiet) as progress,
        working_on(f"checking {count} models", quiet=quiet),
    ):
        result = check_project(
            project,
            known,
            CheckOptions(
                today=date.today(), only=models, against=against, baseline=baseline, update_baseline=update_baseline,
                workers=workers or project.workers or default_workers(count), backend=backend, progress=progress,
            ),
        )  # fmt: skip
    for note in result.notes:
        say(note, quiet=quiet)
    for model in result.models:
        for note in model.analysis.model.notes if model.analysis is not None else ():
            say(f"{model.name}: {note}", quiet=quiet)
    write_results(lambda one: render_check(result, one, width=text_width()), form, files)
    return 0 if result.exit_code == 1 and exit_zero else result.exit_code


_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")


@contextmanager
def _outside_a_git_hook() -> Iterator[None]:
    """Without what git tells a hook of repository and index, which must not hold for the worktree of a revision."""
    kept = {name: os.environ.pop(name) for name in _HOOK_VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


_FEW = 3
"""Models that one process has done before the others of a pool have started."""


def default_workers(count: int) -> int:
    """Every processor, unless there is too little to share out."""
    return 1 if count <= _FEW else min(count, available_workers())


def vocabulary() -> Vocabulary:
    """The options of ``analyze`` as keys of a configuration."""
    options = [p for p in analyze.params if isinstance(p, click.Option) and p.name not in _NOT_KEYS]
    return Vocabulary(tuple(_key(option) for option in options), _values_of, shared.analysis_options)


def _key(option: click.Option) -> Key:
    name = option.opts[0]
    if option.is_flag:
        kind = Kind.FLAG
    elif option.name in _PAIRED:
        kind = Kind.PAIRS
    elif option.multiple:
        kind = Kind.TEXTS
    else:
        kind = _KINDS.get(option.type.name, Kind.QUANTITY if option.metavar in ("SHARE", "RATE") else Kind.TEXT)
    choices = tuple(option.type.choices) if isinstance(option.type, click.Choice) else ()
    metavar = f" ({option.metavar})" if option.metavar else ""
    return Key(name.removeprefix("--"), kind, f"{option.help or 'As the option'}{metavar}", name, choices)


def _values_of(words: Sequence[str]) -> Mapping[str, Any]:
    """What ``analyze`` would make of these words."""
    try:
        return analyze.make_context("analyze", [*words, "MODEL"]).params
    except click.ClickException as error:
        raise UsageError(error.format_message().rstrip(".")) from None
