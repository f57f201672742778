"""graphcost against onnx-tool, whole processes: wall time and peak memory.

``python -m benchmarks.speed`` needs ``pip install onnx-tool==1.0.1``. Both sides read the
same files and run in turn; a row's figures are medians, its ratios come from this one run.
Exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._files import BERT_MACS, BERT_PARAMS, bert_base, mixed_chain, resnet50
from benchmarks._measure import MB, Run, heading, middle, run, table, verdict

CHAIN_OPS = 20_000


@dataclass(frozen=True, slots=True)
class Target:
    """A file, what is expected of graphcost on it, and how much better than the peer it must be."""

    name: str
    make: Callable[[Path], Path]
    macs: int
    params: int
    faster: float
    smaller: float
    """Peer's peak memory over graphcost's; 0 where nothing is promised."""


TARGETS = (
    Target("ResNet-50, 102 MB", resnet50, 4_089_184_256, 25_557_032, faster=1, smaller=0),
    Target("BERT-base, 438 MB", bert_base, BERT_MACS, BERT_PARAMS, faster=2, smaller=5),
    Target(
        f"chain of {CHAIN_OPS} operators",
        lambda path: mixed_chain(path, CHAIN_OPS),
        CHAIN_OPS // 4 * 4 * 8 * 8,
        CHAIN_OPS // 4 * (8 * 8 + 3 * 8),
        faster=15,
        smaller=0,
    ),
)


def compare(target: Target, file: Path, repeat: int, scratch: Path) -> tuple[list[Run], list[Run]]:
    """``repeat`` runs of each side, in turn, after one of graphcost that writes its bytecode.

    graphcost's counts are checked; an exit code other than 0 is refused.
    """
    sides: tuple[list[Run], list[Run]] = ([], [])
    commands = (
        [sys.executable, "-m", "graphcost", "count", str(file), "--format", "json", "--quiet"],
        [sys.executable, "-m", "onnx_tool", "-i", str(file)],
    )
    run(commands[0], scratch)
    for _ in range(repeat):
        for runs, command in zip(sides, commands, strict=True):
            done = run(command, scratch)
            if done.exit_code != 0:
                raise SystemExit(f"{' '.join(command)} ended with {done.exit_code}: {done.stderr[-500:]}")
            runs.append(done)
    counted = json.loads(sides[0][-1].stdout)["graph"]
    if (counted["macs"], counted["params"]) != (target.macs, target.params):
        raise SystemExit(f"{target.name}: counted {counted['macs']} MACs, {counted['params']} parameters; "
                         f"{target.macs} and {target.params} are right")  # fmt: skip
    return sides


def main() -> int:
    """Measure, print the table, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each side on the two models (default 5)")
    parser.add_argument("--repeat-chain", type=int, default=3, help="as --repeat, on the chain (default 3, 0: none)")
    parser.add_argument("--folder", type=Path, help="keep the files here (550 MB); default: a temporary folder")
    arguments = parser.parse_args()
    if find_spec("onnx_tool") is None:
        print("onnx-tool is not installed; pip install onnx-tool==1.0.1", file=sys.stderr)
        return 2
    print(heading("python -m benchmarks.speed " + " ".join(sys.argv[1:])))
    rows: list[list[str]] = []
    missed: list[str] = []
    with TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for index, target in enumerate(TARGETS):
            repeat = arguments.repeat_chain if index == len(TARGETS) - 1 else arguments.repeat
            if repeat == 0:
                continue
            file = target.make(folder / f"model_{index}.onnx")
            ours, theirs = compare(target, file, repeat, Path(scratch))
            time = [middle(runs, lambda r: r.wall_s) for runs in (ours, theirs)]
            peak = [middle(runs, lambda r: r.peak_bytes) for runs in (ours, theirs)]
            faster, smaller = time[1] / time[0], peak[1] / peak[0]
            promised = f">= {target.faster:g}x time" + (f", >= {target.smaller:g}x memory" if target.smaller else "")
            rows.append(
                [target.name, f"{time[0]:.2f} s", f"{time[1]:.2f} s", f"{faster:.1f}x",
                 f"{peak[0] / MB:.0f} MB", f"{peak[1] / MB:.0f} MB", f"{smaller:.1f}x", promised]
            )  # fmt: skip
            if faster < target.faster:
                missed.append(f"{target.name}: {faster:.2f}x as fast, {target.faster:g}x promised")
            if smaller < target.smaller:
                missed.append(f"{target.name}: 1/{smaller:.1f} of the memory, 1/{target.smaller:g} promised")
    header = ["file", "graphcost", "onnx-tool", "faster", "peak", "its peak", "smaller", "target"]
    print(table(header, rows))
    return verdict(missed)


if __name__ == "__main__":
    sys.exit(main())
