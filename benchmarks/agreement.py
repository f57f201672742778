"""The same network through torch, its ONNX export, the zoo and Keras: one table, exit 1 where they disagree.

``python -m benchmarks.agreement [NAME ...]``. Matmul-class FLOPs, parameters and gradient
bytes must be equal; elementwise FLOPs and activation bytes are printed beside, since
exporters write GELU and normalisations differently. ``trace`` compares the time of the
torch road with that of ``torch.export`` alone, in one run.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

import graphcost
from benchmarks._measure import machine
from benchmarks.agreement_models import MODELS, Built
from graphcost.graph import build_graph, totals
from graphcost.models_zoo import ZOO, build
from graphcost.report.tables import table_text
from graphcost.training import plan_step

FOLDED = "the exporter folds batch norm: its scale and shift go, one bias a channel comes"
DIFFERENCES: dict[tuple[str, str], tuple[int, str]] = {
    ("resnet50", "onnx"): (-26_560, FOLDED),
    ("mobilenet-v2", "onnx"): (-17_056, FOLDED),
    ("gpt2 (2 layers)", "onnx"): (
        2 * 64 * 64,
        "the exporter stores the causal mask, one a layer, as a term",
    ),
    ("lstm tagger", "onnx"): (2 * 128, "the exporter stores the zero initial state, both directions"),
    ("lstm tagger", "keras"): (
        -2 * 2 * 4 * 128,
        "a Keras LSTM has one bias of 4H where torch has two: two layers, both directions",
    ),
    ("gpt2 (2 layers)", "keras"): (64 * 64, "the graph holds the causal mask as one constant, a term"),
}
"""(model, road) -> parameters more than the torch module has, and the real reason."""


APPLICATIONS = {"mobilenet-v2": "MobileNetV2", "vgg16": "VGG16"}
"""Networks that keras.applications builds alike; the others are built in ``agreement_keras``."""


def figures(graph: Any) -> tuple[int, int, int, int, int]:
    """Matmul FLOPs, parameters, gradient bytes; elementwise FLOPs and activation bytes for information."""
    found, plan = totals(graph), plan_step(graph)
    if found.coverage.unknown:
        raise SystemExit(f"operators without a rule: {found.coverage.unknown}")
    return (
        found.cost.matmul_flops, found.params, plan.gradient_bytes, found.cost.elementwise_flops,
        plan.memory.activations_bytes,
    )  # fmt: skip


def through_onnx(built: Built, folder: Path) -> Any:
    """torch's own exporter, weights in a side file."""
    module, inputs = built
    path = folder / "model.onnx"
    torch.onnx.export(module.eval(), inputs, path, dynamo=True, external_data=True, verbose=False)
    return graphcost.load(path)


def roads(name: str, built: Built, folder: Path) -> dict[str, Any]:
    """Every road that the network can take here."""
    batch = built[1][0].shape[0]
    graphs = {"torch": graphcost.load(built[0], built[1]), "onnx": through_onnx(built, folder)}
    if name in ZOO:
        graphs["zoo"] = build_graph(build(name, batch=batch))
    if find_spec("tensorflow"):
        graphs["keras"] = through_keras(name, batch)
    return graphs


def through_keras(name: str, batch: int) -> Any:
    """Keras layers, a tf.function for the gated network."""
    if name in APPLICATIONS:
        return graphcost.load(f"keras:{APPLICATIONS[name]}", batch=batch)
    from benchmarks.agreement_keras import KERAS

    return graphcost.load(KERAS[name]())


def _randomise(module: Any) -> None:
    """No two tensors alike: exporters store equal ones (zero biases, unit scales) once."""
    torch.manual_seed(0)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)


def trace_overhead(built: Built) -> float:
    """Seconds of load() over seconds of torch.export.export, the same module, one after the other twice."""
    ratios = []
    for _ in range(2):
        start = time.perf_counter()
        torch.export.export(built[0].eval(), built[1], strict=False)
        alone = time.perf_counter() - start
        start = time.perf_counter()
        graphcost.load(built[0], built[1])
        ratios.append((time.perf_counter() - start) / alone)
    return min(ratios)


def main() -> int:
    """Print the table; 1 where roads disagree without a named reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}")
    chosen = parser.parse_args().names or list(MODELS)
    warnings.simplefilter("ignore")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    rows, failures = [], 0
    for name in chosen:
        built = MODELS[name]()
        _randomise(built[0])
        overhead = trace_overhead(built)
        with tempfile.TemporaryDirectory() as folder:
            found = {road: figures(graph) for road, graph in roads(name, built, Path(folder)).items()}
        flops, params, gradient_bytes, *_ = found["torch"]
        for road, values in found.items():
            more, reason = DIFFERENCES.get((name, road), (0, "equal"))
            agrees = values[:3] == (flops, params + more, gradient_bytes + 4 * more)
            failures += not agrees
            verdict = reason if agrees else "DIFFERS"
            timing = f"{overhead:.2f}x" if road == "torch" else ""
            rows.append([name, road, *(f"{value:,}" for value in values), verdict, timing])
    columns = [
        "model",
        "road",
        "matmul FLOP",
        "params",
        "gradient B",
        "elementwise FLOP",
        "activation B",
        "",
        "trace",
    ]
    print(f"$ python -m benchmarks.agreement {' '.join(sys.argv[1:])}".rstrip())
    print(machine())
    print(table_text(columns, rows, right=(2, 3, 4, 5, 6, 8), width=210))
    print("trace: seconds of graphcost.load over seconds of torch.export.export alone, same run")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
