"""Terminal captures in the README, made by the commands they show.

``python -m benchmarks.captures`` prints them, ``--write`` puts them into README.md, and a
test compares. A capture is a fenced block after a marker comment::

    <!-- capture: graphcost analyze light_resnet50.onnx --gpus 8 -->
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from graphcost.cli.main import main as graphcost

README = Path(__file__).parents[1] / "README.md"
MODELS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Full-size architectures in a few kilobytes, inside the onnx wheel: what the captures analyse."""

_CAPTURE = re.compile(r"(<!-- capture: (?P<command>.+?) -->\n```text\n)(?P<body>.*?)(```\n)", re.DOTALL)


def capture(command: str) -> str:
    """What ``command`` prints on stdout at a width of 100, with its command line and exit code.

    Commands joined by ``&&`` run one after another in one folder, each shown with what it prints; all must succeed.
    """
    shown, codes = [], []
    with _inside(MODELS):
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


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """In a scratch folder with links to the files of ``folder``, so that commands may write."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    scratch = TemporaryDirectory()
    for file in folder.glob("*.onnx"):
        Path(scratch.name, file.name).symlink_to(file)
    os.chdir(scratch.name)
    os.environ["COLUMNS"] = "100"
    try:
        yield
    finally:
        os.chdir(before)
        scratch.cleanup()
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns


def captured(text: str) -> str:
    """``text`` with every capture made anew."""
    return _CAPTURE.sub(lambda match: f"{match[1]}{capture(match['command'])}{match[4]}", text)


def main() -> None:
    """Print the captures, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update README.md")
    arguments = parser.parse_args()
    text = README.read_text("utf-8")
    if arguments.write:
        README.write_text(captured(text), "utf-8")
        return
    for match in _CAPTURE.finditer(text):
        print(capture(match["command"]))


if __name__ == "__main__":
    main()
