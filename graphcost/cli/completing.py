"""What shells complete, and the examples at the end of a command's help."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from shlex import shlex

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def examples(*lines: str) -> str:
    """The epilog that shows commands as they can be typed; a test runs every one."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _of(names: Callable[[], Iterable[str]], *, or_files: bool = False) -> Complete:
    """Names, read when they are asked for; where none fits and a file may stand for one, files."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        head, comma, last = incomplete.rpartition(",")
        found = [CompletionItem(f"{head}{comma}{name}") for name in names() if name.startswith(last)]
        return found or ([CompletionItem(incomplete, type="file")] if or_files else [])

    return complete


def _zoo() -> list[str]:
    from graphcost.models_zoo import names

    return [f"zoo:{name}" for name in names()]


def _bare_zoo() -> list[str]:
    return [name.removeprefix("zoo:") for name in _zoo()]


def _clusters() -> list[str]:
    from graphcost.device_db import cluster_names

    return list(cluster_names())


def _devices() -> list[str]:
    from graphcost.device_db import device_names

    return list(device_names())


def _architectures() -> list[str]:
    from graphcost.arch import ARCHITECTURES

    return list(ARCHITECTURES)


def _schedulers() -> list[str]:
    from graphcost.sched import SCHEDULERS

    return list(SCHEDULERS)


models = _of(_zoo, or_files=True)
zoo = _of(_bare_zoo)
clusters = _of(_clusters, or_files=True)
devices = _of(_devices, or_files=True)
hardware = _of(lambda: [*_devices(), *_clusters()], or_files=True)
architectures = _of(_architectures)
schedulers = _of(_schedulers)


def listed(_context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The words of a metavar such as ``none|ideal|bucketed``; those in capitals stand for something else."""
    words = re.split(r"[|]", parameter.metavar or "")
    return [CompletionItem(w) for w in words if w.startswith(incomplete) and re.fullmatch(r"[a-z0-9-]+", w)]


class _Bash(BashComplete):
    """bash breaks words at colons, which model names hold: the line goes over whole, replies lose what is typed."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response item type value word
    response=$(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)
    COMPREPLY=()
    word="${COMP_LINE:0:COMP_POINT}"
    word="${word##*[[:space:]]}"
    for item in $response; do
        IFS=',' read -r type value <<< "$item"
        if [[ $type == 'dir' ]]; then
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
                value="${value#"${word%%"${word##*:}"}"}"
            fi
            COMPREPLY+=("$value")
        fi
    done
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one at it."""
        line = os.environ["COMP_WORDS"]
        words = _words(line)
        at_a_new_word = not line or line[-1].isspace()
        return (words[1:], "") if at_a_new_word else (words[1:-1], words[-1])


def _words(line: str) -> list[str]:
    """A shell's words of a line that may end inside quotes."""
    lexer = shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[str] = []
    try:
        found.extend(lexer)
    except ValueError:  # an open quote: what stands behind it is the last word
        found.append(lexer.token)
    return found


add_completion_class(_Bash)
