"""Another git revision of the project, in a temporary worktree that is gone afterwards."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from graphcost.errors import UsageError


@dataclass(frozen=True, slots=True)
class Revision:
    """``commit`` is checked out; ``folder`` is where the project's folder lies in it."""

    ref: str
    commit: str
    folder: Path


@contextlib.contextmanager
def checked_out(ref: str, folder: Path) -> Iterator[Revision]:
    """The revision where the work on ``HEAD`` left ``ref``: their merge base, as a pull request is shown.

    What others have put on ``ref`` since then is not this work's doing. Raises ``UsageError``
    where there is no repository, no such revision, or (shallow clone) no common ancestor.
    The worktree goes when the block ends, by an exception or a signal too.
    """
    top = _top(folder)
    commit = _base_commit(ref, top)
    place = folder.resolve().relative_to(Path(top).resolve())
    with _termination_raises(), TemporaryDirectory(prefix="graphcost-") as scratch:
        tree = Path(scratch) / "base"
        try:
            _git(top, "worktree", "add", "--detach", "--quiet", str(tree), commit, hooks=False)
            yield Revision(ref, commit, tree / place)
        finally:
            _git(top, "worktree", "remove", "--force", str(tree), check=False)
    _git(top, "worktree", "prune", check=False)


def _top(folder: Path) -> str:
    try:
        found = _git(str(folder), "rev-parse", "--show-toplevel", check=False)
    except FileNotFoundError:
        raise UsageError("--against needs git, which is not installed") from None
    if found.returncode:
        raise UsageError(f"--against: {folder} is in no git repository ({_last_line(found.stderr)})")
    return found.stdout.strip()


def _base_commit(ref: str, top: str) -> str:
    resolved = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", check=False)
    shallow = _git(top, "rev-parse", "--is-shallow-repository", check=False).stdout.strip() == "true"
    deepen = "the clone is shallow: fetch all of it (git fetch --unshallow; fetch-depth: 0 in GitHub Actions)"
    if resolved.returncode:
        hint = deepen if shallow else "git branch -a lists branches; git fetch brings those of a remote"
        raise UsageError(f"--against {ref}: no such revision; {hint}")
    if _git(top, "rev-parse", "--verify", "--quiet", "HEAD", check=False).returncode:
        raise UsageError(f"--against {ref}: nothing is committed here yet")
    base = _git(top, "merge-base", "--end-of-options", resolved.stdout.strip(), "HEAD", check=False)
    if base.returncode:
        why = deepen if shallow else "it shares no history with HEAD"
        raise UsageError(f"--against {ref}: no common ancestor with HEAD; {why}")
    return base.stdout.strip()


def _git(folder: str, *arguments: str, check: bool = True, hooks: bool = True) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", folder, *([] if hooks else ["-c", "core.hooksPath=/dev/null"]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise UsageError(f"--against: git {arguments[0]} failed: {_last_line(done.stderr)}")
    return done


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


@contextlib.contextmanager
def _termination_raises() -> Iterator[None]:
    """A termination signal unwinds like Ctrl-C, so that the worktree is removed; only the main thread may ask."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
