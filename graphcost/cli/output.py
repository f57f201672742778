"""What commands write: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from graphcost.errors import UsageError
from graphcost.report import FORMATS, split_output

SLOW_S = 2.0
"""A step that takes longer says what it is doing."""

MAX_WIDTH = 110


def text_width() -> int:
    """Columns for tables: the terminal's, within reason; 100 where there is none."""
    return min(MAX_WIDTH, get_terminal_size((100, 24)).columns)


def write_result(text: str, output: str | None = None) -> None:
    """Write a result to stdout, or to a file."""
    if output is None:
        click.echo(text.rstrip("\n"))
        return
    try:
        Path(output).write_text(text if text.endswith("\n") else text + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"--output {output}: cannot be written ({error.strerror})") from error


def checked_outputs(outputs: Sequence[str], formats: Collection[str] = FORMATS) -> list[tuple[str, str]]:
    """(format, file) of every ``--output``; a wrong one fails before anything is analysed."""
    found = [split_output(output, formats) for output in outputs]
    for _, file in found:
        if not Path(file).parent.is_dir():
            raise UsageError(f"--output {file}: no folder {Path(file).parent}")
    return found


def write_results(make: Callable[[str], str], form: str, outputs: Sequence[tuple[str, str]]) -> None:
    """``make(form)`` to stdout, unless files are all that was asked for, and to every file.

    A file that cannot be written keeps none of the others from being written; then raises
    ``UsageError``.
    """
    failed: UsageError | None = None
    for one, file in outputs:
        try:
            write_result(make(one), file)
        except UsageError as error:
            failed = failed or error
    if not outputs or form != "text" or failed is not None:
        write_result(make(form))
    if failed is not None:
        raise failed


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Callable[[str, int], Callable[[Any], None]]]:
    """``start(what, count)`` gives a function to call as each item ends; bars are for a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, count: lambda item: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def start(what: str, count: int) -> Callable[[Any], None]:
            task = bars.add_task(what, total=count)
            return lambda item: bars.advance(task)

        yield start


def write_reports(render: Callable[[str], str], form: str, outputs: Sequence[str], formats: Collection[str]) -> None:
    """As ``write_results``, where a command knows only some ``formats``."""
    write_results(render, form, checked_outputs(outputs, formats))


def say(text: str, *, quiet: bool = False) -> None:
    """A line on stderr."""
    if not quiet:
        click.echo(f"graphcost: {text}", err=True)


@contextmanager
def working_on(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Say ``what`` on stderr if the block takes longer than two seconds."""
    if quiet:
        yield
        return
    timer = threading.Timer(SLOW_S, lambda: print(f"graphcost: {what} ...", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
