"""What reading a TensorFlow model costs beyond importing TensorFlow, as whole processes.

``python -m benchmarks.tf_startup`` makes a small convolutional network as a frozen graph, a
SavedModel and a Keras file, and runs ``graphcost count`` on each in turn with
``python -c "import tensorflow"``. Figures are medians, ratios come from this one run.
Exits 1 where a ratio is over the limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._measure import MB, Run, heading, middle, run, table, verdict

MAX_RATIO = 1.3
BARE = "import tensorflow"
FILES = {"frozen graph": "model.pb", "SavedModel": "saved_model_folder", "Keras file": "model.keras"}

MACS = 30 * 30 * 16 * 27 + 30 * 30 * 16 * 10
"""Of one sample: 3 x 3 convolution of 32 x 32 x 3 to 16 channels, dense to 10."""


def make(folder: Path) -> None:
    """Write the three files. Imports TensorFlow, so it runs in a process of its own."""
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    layers = [keras.layers.Conv2D(16, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((32, 32, 3), name="image"), *layers])
    model.save(folder / FILES["Keras file"])
    model.export(folder / FILES["SavedModel"], verbose=False)
    spec = tf.TensorSpec((None, 32, 32, 3), name="image")
    traced = tf.function(lambda image: model(image, training=False)).get_concrete_function(spec)
    frozen = convert_variables_to_constants_v2(traced).graph.as_graph_def()
    (folder / FILES["frozen graph"]).write_bytes(frozen.SerializeToString())


def checked(command: Sequence[str], scratch: Path) -> Run:
    """One run; an exit code other than 0, or another count, is refused."""
    done = run(command, scratch)
    if done.exit_code != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.exit_code}: {done.stderr[-500:]}")
    if done.stdout.strip() and json.loads(done.stdout)["graph"]["macs"] != MACS:
        raise SystemExit(f"{' '.join(command)}: {MACS} MACs are right")
    return done


def main() -> int:
    """Measure, print the table, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each command, in turn (default 3)")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make is not None:
        make(arguments.make)
        return 0
    if find_spec("tensorflow") is None:
        print("TensorFlow is not installed; pip install 'graphcost[tensorflow]'", file=sys.stderr)
        return 2
    print(heading("python -m benchmarks.tf_startup " + " ".join(sys.argv[1:])))
    with TemporaryDirectory() as made:
        folder = Path(made)
        checked([sys.executable, "-m", "benchmarks.tf_startup", "--make", made], folder)
        commands = {BARE: [sys.executable, "-c", BARE]} | {
            name: [sys.executable, "-m", "graphcost", "count", str(folder / file), "--batch", "1", "--format", "json",
                   "--quiet"]
            for name, file in FILES.items()
        }  # fmt: skip
        runs: dict[str, list[Run]] = {name: [] for name in commands}
        for round_ in range(arguments.repeat + 1):  # the first writes bytecode
            for name, command in commands.items():
                done = checked(command, folder)
                if round_:
                    runs[name].append(done)
    bare_s = middle(runs[BARE], lambda r: r.wall_s)
    rows, missed = [], []
    for name, listed in runs.items():
        wall_s, ratio = middle(listed, lambda r: r.wall_s), middle(listed, lambda r: r.wall_s) / bare_s
        target = "" if name == BARE else f"<= {MAX_RATIO:g}"
        rows.append([name, f"{wall_s:.2f} s", f"{middle(listed, lambda r: r.cpu_s):.2f} s",
                     f"{middle(listed, lambda r: r.peak_bytes) / MB:.0f} MB", f"{ratio:.2f}", target])  # fmt: skip
        if ratio > MAX_RATIO:
            missed.append(f"{name}: {ratio:.2f} times the import alone")
    print(table(["process", "wall time", "processor time", "peak", "ratio", "target"], rows))
    return verdict(missed)


if __name__ == "__main__":
    sys.exit(main())
