"""Wall time of ``graphcost check`` on twenty ONNX models, the whole process.

``python -m benchmarks.check_speed`` writes a project of the nine full-size networks inside the onnx wheel, each at
two batches, and of ResNet-50 and BERT-base with weights (540 MB), and prints a line for each number of workers.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._files import bert_base, resnet50
from benchmarks._measure import heading, middle, run
from benchmarks.captures import MODELS

TARGET_S = 10.0
"""On two cores."""


def project(folder: Path) -> int:
    """Write the project; returns its number of models."""
    sources = [(file, batch) for file in sorted(MODELS.glob("*.onnx")) for batch in (8, 32)]
    files = [resnet50(folder / "resnet50.onnx"), bert_base(folder / "bert.onnx")]
    entries = [f'[[models]]\nsource = {json.dumps(str(file))}\nname = "{file.stem}-{batch}"\nbatch = {batch}\n'
               for file, batch in [*sources, *((file, 32) for file in files)]]  # fmt: skip
    (folder / "graphcost.toml").write_text("gpus = 8\nmax-comm-share = 1.0\n" + "".join(entries), "utf-8")
    return len(entries)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each row (default 3)")
    arguments = parser.parse_args()
    print(heading("python -m benchmarks.check_speed " + " ".join(sys.argv[1:])))
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        count = project(folder)
        for workers in ([], ["--workers", "1"]):
            command = [
                sys.executable,
                "-m",
                "graphcost",
                "check",
                "--config",
                str(folder / "graphcost.toml"),
                "--quiet",
                "--format",
                "json",
                *workers,
            ]
            runs = [run(command, folder) for _ in range(arguments.repeat)]
            for done in runs:
                if done.exit_code != 0 or len(json.loads(done.stdout)["models"]) != count:
                    raise SystemExit(f"ended with {done.exit_code}: {done.stderr[-500:]}")
            seconds = middle(runs, lambda one: one.wall_s)
            what = "1 worker" if workers else "workers by default"
            print(f"{count} ONNX models, {what}: {seconds:.2f} s (target under {TARGET_S:g} s on two cores)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
