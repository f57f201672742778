"""The analyses of a project's models, several at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphcost.analysis import analyze_with
from graphcost.many import each
from graphcost.placing import AnalysisOptions
from graphcost.result import Analysis


@dataclass(frozen=True, slots=True)
class Job:
    """One analysis. ``folder``: what relative paths start from."""

    source: str
    options: AnalysisOptions
    folder: Path


def run_jobs(
    jobs: Sequence[Job],
    *,
    workers: int,
    backend: str = "local",
    done: Callable[[Job], None] | None = None,
    apart: bool = False,
) -> Iterator[Analysis | Exception]:
    """Results in the order of ``jobs``; ``apart`` as in ``many.each``."""
    return each(_analysed, jobs, workers=workers, backend=backend, done=done, apart=apart)


def _analysed(job: Job) -> Analysis:
    with contextlib.chdir(job.folder):
        return analyze_with(job.source, job.options, command="check")
