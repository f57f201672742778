"""Measuring commands: wall time and peak memory of whole processes, tables, the machine's name."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

MB = 1e6
ROOT = Path(__file__).parents[1]

# Linux carries the peak of the process that called exec over to the one it becomes, so a large
# benchmark would lend its own peak to whatever it measures. This launcher is small and clean.
_LAUNCHER = """
import json, os, subprocess, sys, time
out, err, command = sys.argv[1], sys.argv[2], sys.argv[3:]
with open(out, "wb") as o, open(err, "wb") as e:
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=o, stderr=e)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
print(json.dumps([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]))
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One whole process: from exec to exit."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    exit_code: int
    stdout: str
    stderr: str


def run(command: Sequence[str], scratch: Path) -> Run:
    """Run ``command`` to its end from the repository's root; its output goes through files in ``scratch``."""
    out, err = scratch / "stdout.txt", scratch / "stderr.txt"
    launched = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCHER, str(out), str(err), *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=_environment(),
    )
    wall_s, cpu_s, peak_bytes, code = json.loads(launched.stdout)
    return Run(wall_s, cpu_s, peak_bytes, code, out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"))


def _environment() -> dict[str, str]:
    """Bytecode is cached, as it is for an installed package; the checkout comes first on the path."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def middle(runs: Sequence[Run], of: Callable[[Run], float]) -> float:
    """The median of a measure over ``runs``."""
    return median(of(each) for each in runs)


def machine() -> str:
    """CPU model, cores that may be used, memory, Python."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (OSError, ValueError):
        memory = ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores{memory}, Python {platform.python_version()}, {platform.system()}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns: readable in a terminal, pastes into a README."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines
    )


def heading(command: str) -> str:
    """What was run, on what."""
    return f"$ {command.strip()}\n{machine()}\n"


def verdict(missed: Sequence[str]) -> int:
    """Print targets that were missed; the process's exit code."""
    for text in missed:
        print(f"MISSED: {text}")
    print("all targets met" if not missed else f"{len(missed)} missed")
    return 1 if missed else 0
