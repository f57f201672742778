"""Errors of predictions, counted so that one model's thousands of rows do not drown the rest.

Step times: |predicted / measured - 1|, its median in every cell (model, GPU, precision,
GPUs, architecture), the mean over a model's cells, then figures over models. Needs pandas
(``graphcost[dataframe]``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.validation.predicting import Outcome

if TYPE_CHECKING:
    import pandas as pd

DIFFERENT = 0.10
"""Runs closer than this are ties: nobody is asked which is faster."""

COMMUNICATION_BOUND = 0.5
"""The verdict's limit on the share of exposed communication."""

_CELL = ["model_id", "gpu", "precision", "gpus", "arch"]
_SAME_JOB = ["table", "framework", "model_id", "task_input", "gpu", "precision", "phase", "batch", "accumulate"]
_SAME_PLACE = [*_SAME_JOB[:1], *_SAME_JOB[2:], "gpus", "servers", "inter_link", "overlap"]


@dataclass(frozen=True, slots=True)
class Scores:
    """Figures of one table; None where it cannot give one. Errors are shares (0.1 = 10 %), points are of 100.

    ``bias``: signed, the median over models. ``scaling_error_points``: T(1)/T(n), both
    predicted against both measured, at equal batch of a GPU. ``comm_share_error_points``:
    exposed wait over T(1) + wait, where the wait was timed; that of one GPU is taken off.
    ``winner_accuracy``: which architecture is faster on the same job, where they differ by
    over 10 %. ``verdict_*``: a share over one half is the positive; where nobody timed the
    wait it is what scaling loses. ``interval_coverage``: measured steps inside the interval.
    """

    table: str
    rows: int
    predicted: int
    skipped: Mapping[str, int]
    median_error: float | None
    mean_error: float | None
    p90_error: float | None
    bias: float | None
    rank_correlation: float | None
    scaling_error_points: float | None
    comm_share_error_points: float | None
    winner_accuracy: float | None
    verdict_accuracy: float | None
    verdict_recall: float | None
    verdict_precision: float | None
    interval_coverage: float | None


def frame_of(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One line per row, predicted or not: what was measured, what is predicted, the error, the reason."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("validate needs pandas: pip install 'graphcost[dataframe]'") from None
    return pd.DataFrame([_record(one) for one in outcomes], columns=list(COLUMNS))


def score(table: str, frame: pd.DataFrame) -> Scores:
    """Every figure that the rows of ``frame`` (see ``frame_of``) allow."""
    done = frame[frame.predicted_s.notna()].copy()
    reasons = frame.loc[frame.predicted_s.isna(), "skipped"].value_counts()
    done["abs_error"] = done.error.abs()
    errors, signed = _per_model(done, "abs_error"), _per_model(done, "error")
    paired = _with_one_gpu(done)
    truth = _shares(paired)
    timed = truth[truth.wait_s.notna()]
    said, true = truth.comm_share > COMMUNICATION_BOUND, truth.share > COMMUNICATION_BOUND
    return Scores(
        table=table,
        rows=len(frame),
        predicted=len(done),
        skipped={str(reason): int(count) for reason, count in reasons.items()},
        median_error=_figure(errors.median()),
        mean_error=_figure(errors.mean()),
        p90_error=_figure(errors.quantile(0.9)),
        bias=_figure(signed.median()),
        rank_correlation=_figure(done.step_s.rank().corr(done.predicted_s.rank())) if len(done) > 1 else None,
        scaling_error_points=_figure(100 * _per_model(paired, "scaling_error").median()),
        comm_share_error_points=_figure(100 * _per_model(timed, "share_error").median()),
        winner_accuracy=_figure(_winners(done).mean()),
        verdict_accuracy=_figure((said == true).mean()),
        verdict_recall=_figure(said[true].mean()),
        verdict_precision=_figure(true[said].mean()),
        interval_coverage=_figure(((done.low_s <= done.step_s) & (done.step_s <= done.high_s)).mean()),
    )


def _per_model(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    """Medians of cells, averaged by model."""
    cells = frame.groupby(_CELL, dropna=False)[column].median()
    return cells.groupby("model_id").mean()


def _with_one_gpu(done: pd.DataFrame) -> pd.DataFrame:
    """Rows of several GPUs beside the same job on one."""
    alone = done[done.gpus == 1].groupby(_SAME_JOB, dropna=False)
    base = alone.agg(
        step_1_s=("step_s", "median"), predicted_1_s=("predicted_s", "median"), comm_1_s=("comm_s", "median")
    )
    several = done[done.gpus > 1].merge(base.reset_index(), on=_SAME_JOB, how="inner")
    several["efficiency"] = several.step_1_s / several.step_s
    several["scaling_error"] = (several.predicted_1_s / several.predicted_s - several.efficiency).abs()
    return several


def _shares(paired: pd.DataFrame) -> pd.DataFrame:
    """Measured shares of exposed communication: timed waits, or what scaling loses."""
    found = paired.copy()
    found["wait_s"] = (found.comm_s - found.comm_1_s).clip(lower=0)
    lost = (1 - found.efficiency).clip(lower=0)
    found["share"] = (found.wait_s / (found.step_1_s + found.wait_s)).where(found.wait_s.notna(), lost)
    found["share_error"] = (found.comm_share - found.share).abs()
    return found


def _winners(done: pd.DataFrame) -> pd.Series[bool]:
    """For every pair of architectures on the same job: is the faster one predicted to be so?"""
    several = done[done.gpus > 1]
    pairs = several.merge(several, on=_SAME_PLACE, suffixes=("", "_other"))
    pairs = pairs[pairs.built_arch < pairs.built_arch_other]
    ratio = pairs.step_s / pairs.step_s_other
    clear = (ratio > 1 + DIFFERENT) | (ratio < 1 / (1 + DIFFERENT))
    right = (pairs.predicted_s > pairs.predicted_s_other) == (ratio > 1)
    found: pd.Series[bool] = right[clear]
    return found


def _figure(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


COLUMNS = (
    "table", "line", "source", "framework", "model_id", "task_input", "gpu", "precision", "phase", "gpus", "servers",
    "inter_link", "arch", "built_arch", "overlap", "batch", "accumulate", "step_s", "comm_s", "predicted_s", "low_s",
    "high_s", "comm_share", "error", "skipped",
)  # fmt: skip
"""Columns of ``frame_of``; times in seconds, the rest as in ``MeasuredRow``."""


def _record(one: Outcome) -> tuple[Any, ...]:
    row, job, step = one.row, one.job, one.step
    return (
        row.table, row.line, row.source, row.framework, row.model_id, row.task_input, row.gpu, row.precision,
        row.phase, row.gpus or 1, job and job.servers,
        row.inter_link, row.arch, job and job.arch, (job and job.overlap) or "", row.batch, row.accumulate,
        row.step_s, row.comm_s,
        step and step.step_s, step and step.step_low_s, step and step.step_high_s, step and step.comm_share,
        one.error, one.skipped,
    )  # fmt: skip
