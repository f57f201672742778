"""A compact copy of the measured tables whose sources carry a licence, for ``graphcost validate``.

``python -m benchmarks.measured_table FOLDER`` reads the full tables and writes
``benchmarks/measured/``: rows with a step time, the columns that a prediction needs, and of
long tables a sample drawn with a fixed seed, whole groups of (model, GPU, batch) so that
T(1) stays beside T(n). Tables without a licence (Sia, HKBU, Lambda's PyTorch) are not copied.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

KEPT = Path(__file__).parent / "measured"
SEED = 20261202

ROWS = {
    "nvidia_dle_train": 400, "dlperf_v100": 300, "paddle_perf": 100, "gavel_throughputs": 358,
    "pollux_traces_t4": 1100, "tf_cnn_benchmarks_2017": 141, "mxnet_k80_scaling": 18, "ps_allreduce_published": 60,
    "lambda_tensorflow": 200, "neusight_models": 109, "pipedream_profiles": 9, "llm_foundry_mpt": 114,
    "timm_train_amp_nchw_pt112_rtx3090": 120, "timm_train_amp_nhwc_pt112_rtx3090": 120,
    "timm_infer_amp_nchw_pt240_rtx3090": 120,
}  # fmt: skip
"""Table -> rows kept at most."""

DROPPED = ["model", "throughput", "throughput_unit", "global_batch"]
"""Follow from the other columns, or are not needed."""

UNLICENSED = ("e-bug/", "github issue", "issues/")
"""Rows of ``ps_allreduce_published`` whose source has no licence that lets figures be copied freely."""


def compact(table: pd.DataFrame, limit: int) -> pd.DataFrame:
    """At most about ``limit`` rows: whole jobs, drawn at random, in the table's order."""
    if "step_time_ms" in table:
        table = table[table.step_time_ms.notna()]
        table = table[~table.source.str.lower().str.contains("|".join(UNLICENSED), na=False)]
        job = ["model_id", "gpu", "precision", "batch_per_gpu", "framework", "task_input"]
    else:
        job = ["model"]
    if len(table) <= limit:
        return table
    jobs = table[job].drop_duplicates().sample(frac=1, random_state=SEED)
    turns = jobs.groupby(job[0]).cumcount()  # models take turns, so that each keeps some jobs
    jobs = jobs.iloc[turns.argsort(kind="stable")]
    sizes = table.groupby(job, dropna=False).size().reset_index(name="rows")
    chosen = jobs.merge(sizes, on=job)
    chosen = chosen[chosen.rows.cumsum() <= limit][job]
    return table.merge(chosen, on=job, how="inner")[table.columns]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    for name, limit in ROWS.items():
        kept = compact(pd.read_csv(chosen.folder / f"{name}.csv", dtype=str), limit)
        kept = kept.drop(columns=[column for column in DROPPED if column in kept and "step_time_ms" in kept])
        kept.to_csv(KEPT / f"{name}.csv", index=False)
        print(f"{name}: {len(kept)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
