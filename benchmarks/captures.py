"""README.md and docs/*.md as scripts: what they show of a terminal is made by the commands they show.

``python -m benchmarks.captures`` prints the captures, ``--write`` puts them into the pages, and a test compares. A
page is played from top to bottom in one scratch folder with the ONNX files of the onnx wheel::

    <!-- capture: graphcost analyze light_resnet50.onnx --gpus 8 -->   a text block: the command, its stdout, its code
    <!-- file: graphcost.toml -->                                      the block is written to that file
    ```sh                                                              the block is run by bash and must end with 0,
    <!-- exit: 1 -->                                                   or with the code that stands before it
    <!-- installs -->                                                  not played but by a slow test: it installs
    <!-- table: benchmarks/README.md: | table | rows -->               the table of that file that starts so
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from graphcost.cli.main import main as graphcost

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MODELS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Full-size architectures in a few kilobytes, inside the onnx wheel: what the captures analyse."""

HOOKS_URL = "https://github.com/OWNER/graphcost"
"""Where a page's pre-commit configuration says that the hooks are; played, it is a repository with the manifest."""

_ITEM = re.compile(
    r"(?P<capture><!-- capture: (?P<command>.+?) -->\n```text\n)(?P<shown>.*?)(?P<capture_end>```\n)"
    r"|<!-- file: (?P<file>.+?) -->\n```\w+\n(?P<content>.*?)```\n"
    r"|(?:<!-- (?:exit: (?P<exit>\d+)|(?P<installs>installs)) -->\n)?```sh\n(?P<script>.*?)```\n"
    r"|(?P<table><!-- table: (?P<source>[^:]+): (?P<head>.+?) -->\n)(?P<rows>(?:\|[^\n]*\n)*)",
    re.DOTALL,
)


def pages() -> list[Path]:
    """The README and every page of docs."""
    return [README, *sorted((ROOT / "docs").glob("*.md"))]


def capture(command: str) -> str:
    """What ``command`` prints on stdout at a width of 100, with its command line and exit code.

    Commands joined by ``&&`` run one after another, each shown with what it prints; all must succeed.
    """
    shown, codes = [], []
    for part in command.split(" && "):
        words = shlex.split(part)
        if words[0] != "graphcost":
            raise ValueError(f"captures are of graphcost commands, not {part!r}")
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            codes.append(graphcost(words[1:]))
        shown.append(f"$ {part}\n{out.getvalue().rstrip()}".rstrip())
    if any(codes[:-1]):
        raise ValueError(f"exit codes {codes} of {command!r}")
    return "\n".join(shown) + f"\n$ echo $?\n{codes[-1]}\n"


def captured(text: str) -> str:
    """``text`` with its commands run and every capture and table made anew."""
    with _scratch():
        return _ITEM.sub(_played, text)


def scripts(text: str, *, installing: bool) -> list[str]:
    """The ``sh`` blocks of a page: those that install, or the others."""
    found = [match for match in _ITEM.finditer(text) if match["script"] is not None]
    return [match["script"] for match in found if (match["installs"] is not None) is installing]


def _played(match: re.Match[str]) -> str:
    if match["capture"] is not None:
        return f"{match['capture']}{capture(match['command'])}{match['capture_end']}"
    if match["table"] is not None:
        return match["table"] + _table(ROOT / match["source"], match["head"])
    if match["file"] is not None:
        file = Path(match["file"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(match["content"], "utf-8")
    elif match["installs"] is None:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", match["script"]], capture_output=True, text=True, check=False
        )
        if done.returncode != int(match["exit"] or 0):
            raise RuntimeError(f"exit {done.returncode} of\n{match['script']}\n{done.stdout}\n{done.stderr}")
    return match[0]


def _table(file: Path, head: str) -> str:
    lines = file.read_text("utf-8").splitlines(keepends=True)
    start = next(index for index, line in enumerate(lines) if line.startswith(head))
    end = next((index for index in range(start, len(lines)) if not lines[index].startswith("|")), len(lines))
    return "".join(lines[start:end])


@contextlib.contextmanager
def _scratch() -> Iterator[None]:
    """In a scratch folder with links to the wheel's models, `graphcost` and `python` on the path, and git set up."""
    with TemporaryDirectory() as scratch:
        place, commands, hooks = (Path(scratch, name) for name in ("work", "bin", "hooks"))
        for folder in (place, commands, hooks):
            folder.mkdir()
        for file in MODELS.glob("*.onnx"):
            (place / file.name).symlink_to(file)
        for name, words in {"graphcost": "-m graphcost", "python": "", "pytest": "-m pytest",
                            "pre-commit": "-m pre_commit"}.items():  # fmt: skip
            (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', "utf-8")
            (commands / name).chmod(0o755)
        git = {
            "user.name": "a", "user.email": "a@example.org", "init.defaultBranch": "main", "commit.gpgsign": "false",
            f"url.{hooks}.insteadOf": HOOKS_URL,
        }  # fmt: skip
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with _environment(
            COLUMNS="100", HOME=scratch, PRE_COMMIT_HOME=str(Path(scratch, "pre-commit")), PYTHONPATH=paths,
            PATH=f"{commands}{os.pathsep}{os.environ['PATH']}", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
            PYTEST_ADDOPTS="-p graphcost.pytest_plugin -p no:cacheprovider",  # an entry point, once installed

            GIT_CONFIG_COUNT=str(len(git)),
            **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(git)},
            **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(git.values())},
        ):  # fmt: skip
            _hooks_repository(hooks)
            with contextlib.chdir(place):
                yield


def _hooks_repository(folder: Path) -> None:
    (folder / ".pre-commit-hooks.yaml").write_bytes((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "hooks"], ["tag", "v0.1.0"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main() -> None:
    """Print the captures, or write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update the pages")
    parser.add_argument("pages", nargs="*", type=Path, help="default: README.md and docs/*.md")
    arguments = parser.parse_args()
    for page in arguments.pages or pages():
        text = page.read_text("utf-8")
        made = captured(text)
        if arguments.write:
            page.write_text(made, "utf-8")
            continue
        for match in _ITEM.finditer(made):
            if match["capture"] is not None:
                print(match["shown"])


if __name__ == "__main__":
    main()
