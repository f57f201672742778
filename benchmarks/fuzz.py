"""Damaged and hostile model files through the whole command line.

``python -m benchmarks.fuzz --count 10000 --seed 0`` damages real and built models (see
``_mutate.py``) and runs ``graphcost`` on each, in worker processes with a limit on memory.
Every file must end in exit 0 to 4 within 20 s (of processor time) and 1 GB; an internal error (70), a traceback,
a hang or a crash of the process is a failure, and its file is kept under --keep.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._measure import MB, ROOT, heading, table
from benchmarks._mutate import mutant
from benchmarks._seeds import seeds

LIMIT_S = 20.0
"""Processor time, so that a busy machine fails nobody."""

HANG_S = 60.0
"""Wall time after which a worker is taken for lost."""

LIMIT_BYTES = 1_000_000_000
ADDRESS_SPACE_BYTES = 6 * 2**30
"""Beyond it allocation fails inside the worker, so that no file takes the machine down."""

ALLOWED = frozenset({0, 1, 2, 3, 4})

# Every command line a file is tried with, in turn: the formats, the re-batching, the recipes.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("analyze", "--gpus", "8", "--format", "json", "--per-op", "--batch", "4"),
    ("analyze", "--gpus", "16", "--arch", "ps", "--profile", "paper"),
    ("analyze", "--gpus", "8", "--arch", "pearl", "--by", "module", "--strict"),
    ("analyze", "--format", "html", "--optimizer", "none"),
    ("analyze", "--format", "json", "--dim", "batch=2", "--precision", "amp-bf16", "--recompute"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one file did. ``code`` is an exit code, or a word for what happened instead of one."""

    index: int
    code: int | str
    seconds: float
    peak_bytes: int
    what: str
    detail: str = ""

    @property
    def failure(self) -> str:
        """Why this is a failure, or an empty string."""
        if self.code not in ALLOWED:
            return f"exit {self.code}" if isinstance(self.code, int) else self.code
        if "Traceback" in self.detail:
            return "traceback"
        if self.seconds > LIMIT_S:
            return "too slow"
        return "too much memory" if self.peak_bytes > LIMIT_BYTES else ""


def run_one(index: int, seed: int, folders: tuple[Path, ...], file: Path) -> Outcome:
    """One file in this process: made, written, analysed."""
    from graphcost.cli.main import main as graphcost

    what, content = mutant(seed, index, _seeds(folders))
    file.write_bytes(content)
    command = [*COMMANDS[index % len(COMMANDS)], str(file)]
    out, err = io.StringIO(), io.StringIO()
    _forget_peak()
    start = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = graphcost(command)
    seconds = time.process_time() - start
    detail = err.getvalue()
    peak_bytes = _peak_bytes()
    if code == 70:
        detail = _where(command, detail)
    wrong = _wrong_numbers(out.getvalue()) if code in (0, 1) and "json" in command else ""
    if wrong:
        return Outcome(index, "impossible number", seconds, peak_bytes, what, wrong)
    return Outcome(index, code, seconds, peak_bytes, what, detail)


def _wrong_numbers(text: str) -> str:
    """The first figure of a JSON result that no model can have (below 0, not a number), or nothing."""
    result = json.loads(text)
    for part in ("graph", "training", "step"):
        for name, value in result[part].items():
            if isinstance(value, (int, float)) and not 0 <= value < float("inf"):
                return f"{part}.{name} is {value}"
    return ""


_made: dict[tuple[Path, ...], list[tuple[str, bytes]]] = {}


def _seeds(folders: tuple[Path, ...]) -> list[tuple[str, bytes]]:
    if folders not in _made:
        _made[folders] = seeds(folders)
    return _made[folders]


def _where(command: Sequence[str], message: str) -> str:
    """The message with the innermost frames of graphcost, from a second run with --debug."""
    from graphcost.cli.main import main as graphcost

    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        graphcost([*command, "--debug"])
    frames = re.findall(r'File "(.+?)", line (\d+), in (\w+)', err.getvalue())
    own = [
        f"{Path(path).relative_to(ROOT)}:{line} {name}" for path, line, name in frames if path.startswith(str(ROOT))
    ]
    return f"{message.strip()[:300]} [{' < '.join(reversed(own[-3:]))}]"


def _forget_peak() -> None:
    """Start the peak of resident memory anew (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")


def _peak_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    except (OSError, StopIteration):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# -- workers


def _work(link: Connection, seed: int, folders: tuple[Path, ...], file: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _seeds(folders)
    link.send(None)  # ready
    while (index := link.recv()) is not None:
        try:
            link.send(run_one(index, seed, folders, file))
        except BaseException as error:
            link.send(Outcome(index, "escaped", 0.0, 0, "", f"{type(error).__name__}: {error}"))


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    link: Connection
    file: Path
    index: int | None = None
    since: float = 0.0


class Pool:
    """Worker processes; one that hangs or dies is replaced, and its file is the reason."""

    def __init__(self, workers: int, seed: int, folders: tuple[Path, ...], scratch: Path) -> None:
        self._seed, self._folders, self._scratch = seed, folders, scratch
        self._context = multiprocessing.get_context("spawn")
        self._started = 0
        self._workers = [self._start() for _ in range(workers)]

    def outcomes(self, indices: Sequence[int]) -> Iterator[Outcome]:
        """One outcome per index, as they come."""
        waiting = list(reversed(indices))
        open_count = len(waiting)
        for worker in self._workers:
            self._hand_out(worker, waiting)
        while open_count:
            ready = wait([worker.link for worker in self._workers], timeout=0.5)
            for position, worker in enumerate(self._workers):
                outcome = self._look(worker, worker.link in ready)
                if outcome is None:
                    continue
                if not worker.process.is_alive() or outcome.code in ("hang", "crash"):
                    self._stop(worker)
                    worker = self._workers[position] = self._start()
                worker.index = None
                self._hand_out(worker, waiting)
                open_count -= 1
                yield outcome

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            self._stop(worker)

    def _look(self, worker: _Worker, has_news: bool) -> Outcome | None:
        if worker.index is None:
            return None
        elapsed = time.monotonic() - worker.since
        if has_news:
            try:
                return worker.link.recv()  # type: ignore[no-any-return]
            except (EOFError, OSError):
                worker.process.join(5)
                return self._lost(worker, "crash", elapsed, f"process ended with {worker.process.exitcode}")
        return self._lost(worker, "hang", elapsed, "") if elapsed > HANG_S else None

    def _lost(self, worker: _Worker, code: str, elapsed: float, detail: str) -> Outcome:
        assert worker.index is not None
        what = mutant(self._seed, worker.index, _seeds(self._folders))[0]
        return Outcome(worker.index, code, elapsed, 0, what, detail)

    def _hand_out(self, worker: _Worker, waiting: list[int]) -> None:
        if waiting:
            worker.index, worker.since = waiting.pop(), time.monotonic()
            worker.link.send(worker.index)

    def _start(self) -> _Worker:
        self._started += 1
        file = self._scratch / f"worker_{self._started}" / "model.onnx"
        file.parent.mkdir()
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._seed, self._folders, file), daemon=True)
        process.start()
        theirs.close()
        mine.recv()
        return _Worker(process, mine, file)

    def _stop(self, worker: _Worker) -> None:
        worker.process.kill()
        worker.process.join()
        worker.link.close()


def report(outcomes: Sequence[Outcome], shown: int = 40) -> str:
    """Counts by exit code, the slowest and largest file, failures grouped by place."""
    counts = Counter(str(outcome.code) for outcome in outcomes)
    lines = [table(["exit code", "files"], [[code, str(count)] for code, count in sorted(counts.items())])]
    slowest, largest = max(outcomes, key=lambda o: o.seconds), max(outcomes, key=lambda o: o.peak_bytes)
    lines.append(f"\nslowest {slowest.seconds:.2f} s: file {slowest.index} ({slowest.what[:100]})")
    lines.append(f"largest {largest.peak_bytes / MB:.0f} MB: file {largest.index} ({largest.what[:100]})")
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.failure:
            place = outcome.detail[outcome.detail.rfind(" [") :] if " [" in outcome.detail else ""
            groups.setdefault(f"{outcome.failure}{place}", []).append(outcome)
    for name, group in sorted(groups.items(), key=lambda item: -len(item[1]))[:shown]:
        first = group[0]
        lines.append(f"\n{len(group)} x {name}\n  e.g. file {first.index} ({first.what[:120]}): {first.detail[:400]}")
    return "\n".join(lines)


def main() -> int:
    """Fuzz, print the table, keep the failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="files (default 10000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=Path, nargs="*", default=[], metavar="FOLDER", help="more models to damage")
    parser.add_argument("--only", type=int, nargs="*", metavar="INDEX", help="just these files")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write failing files here")
    arguments = parser.parse_args()
    folders = tuple(arguments.seeds)
    print(heading("python -m benchmarks.fuzz " + " ".join(sys.argv[1:])))
    indices = arguments.only or list(range(arguments.count))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the pool is closed
    start = time.perf_counter()
    found: list[Outcome] = []
    with TemporaryDirectory() as scratch:
        pool = Pool(arguments.workers, arguments.seed, folders, Path(scratch))
        try:
            for outcome in pool.outcomes(indices):
                found.append(outcome)
                if outcome.failure and arguments.keep is not None:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    what, content = mutant(arguments.seed, outcome.index, _seeds(folders))
                    stem = f"seed{arguments.seed}_{outcome.index}"
                    (arguments.keep / f"{stem}.onnx").write_bytes(content)
                    command = " ".join(COMMANDS[outcome.index % len(COMMANDS)])
                    note = f"graphcost {command} {stem}.onnx\n{what}\n{outcome.failure}: {outcome.detail}\n"
                    (arguments.keep / f"{stem}.txt").write_text(note, "utf-8", "replace")
        finally:
            pool.close()
    failures = [outcome for outcome in found if outcome.failure]
    print(report(found))
    print(f"\n{len(found)} files in {time.perf_counter() - start:.0f} s, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
