"""What commands write: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from shutil import get_terminal_size

import click

from graphcost.errors import UsageError

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


_SUFFIXES = {".txt": "text", ".json": "json", ".md": "markdown", ".csv": "csv", ".tex": "latex"}


def write_reports(render: Callable[[str], str], form: str, outputs: Sequence[str], formats: Collection[str]) -> None:
    """A report in ``form`` on stdout, unless it goes to files only; each file in the format of its suffix."""
    chosen = {output: _SUFFIXES.get(PurePath(output.lower()).suffix, "") for output in outputs}
    for output, name in chosen.items():
        if name not in formats:
            known = ", ".join(suffix for suffix, known in _SUFFIXES.items() if known in formats)
            raise UsageError(f"--output {output}: no format for this suffix (known: {known})")
    if not outputs or form != "text":
        write_result(render(form))
    for output, name in chosen.items():
        write_result(render(name), output)


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
