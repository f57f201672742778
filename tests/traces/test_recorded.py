"""Traces that torch.profiler records here and now, against the plan of the same module and by hand."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphcost
from graphcost.ir import Phase
from graphcost.recipe import OPTIMIZERS, Recipe
from graphcost.traces import is_trace, read_trace, trace_features
from graphcost.training import plan_step

torch = pytest.importorskip("torch")

STEPS = 2


def cnn() -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, groups=4), nn.ReLU(), nn.ConvTranspose2d(16, 4, 3, stride=2), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 14 * 14, 10),
    )  # fmt: skip


def mlp() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))


MODELS = {"cnn": (cnn, (4, 3, 32, 32)), "mlp": (mlp, (4, 32))}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two marked steps of each model: forward, backward, SGD."""
    folder, found = tmp_path_factory.mktemp("traces"), {}
    for name, (make, shape) in MODELS.items():
        module = make()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, foreach=False)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            record_shapes=True,
            with_flops=True,
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=STEPS),
        ) as recorded:
            for _ in range(2 + STEPS):
                optimizer.zero_grad()
                module(torch.zeros(shape)).sum().backward()
                optimizer.step()
                recorded.step()
        found[name] = folder / f"{name}.pt.trace.json"
        recorded.export_chrome_trace(str(found[name]))
    return found


def planned(name: str) -> tuple[int, int]:
    """Matmul FLOPs of both passes, and bytes of everything else with the update."""
    make, shape = MODELS[name]
    plan = plan_step(graphcost.load(make(), (torch.zeros(shape),)), Recipe(optimizer=OPTIMIZERS["sgd"]))
    flops = sum(plan.total(phase).matmul_flops for phase in (Phase.FORWARD, Phase.BACKWARD))
    others = (op.cost for op in (*plan.forward, *plan.backward) if op.cost is not None and not op.cost.matmul_flops)
    return flops, sum(cost.bytes for cost in others) + plan.update.bytes


@pytest.mark.parametrize("name", MODELS)
def test_flops_are_the_plan_s(traces: dict[str, Path], name: str) -> None:
    """Two ways to one number: shapes at run time, and the exported graph with its rules."""
    found = trace_features(str(traces[name]))
    assert found.steps == STEPS
    assert found.features.flops == planned(name)[0]


def test_flops_of_an_mlp_by_hand(traces: dict[str, Path]) -> None:
    """Forward, both gradients of the second layer, the weight's alone of the first."""
    assert trace_features(str(traces["mlp"])).features.flops == 2 * 4 * (2 * 32 * 64 + 3 * 64 * 10)


@pytest.mark.parametrize("name", MODELS)
def test_memory_traffic_is_near_the_plan_s(traces: dict[str, Path], name: str) -> None:
    """The trace also holds zeroed and summed gradients, and counts normalisations once."""
    found = trace_features(str(traces[name])).features.mem_bytes
    assert found == pytest.approx(planned(name)[1], rel=0.4)


def test_what_is_not_recorded_is_empty_and_said(traces: dict[str, Path]) -> None:
    found = trace_features(str(traces["mlp"]))
    assert found.features.unknown == ("batch", "input_bytes")
    assert any(note.startswith("input copies are not known: no device") for note in found.notes)
    assert (found.features.arch, found.features.cnodes) == ("single", 1)
    assert (found.features.dense_weight_bytes, found.features.sparse_weight_bytes) == (0, 0)


def test_compressed_is_the_same(traces: dict[str, Path], tmp_path: Path) -> None:
    packed = tmp_path / "t.json.gz"
    with traces["mlp"].open("rb") as plain, gzip.open(packed, "wb") as out:
        shutil.copyfileobj(plain, out)
    assert is_trace(str(packed)) and is_trace(str(traces["mlp"]))
    assert trace_features(str(packed)) == trace_features(str(traces["mlp"]))


def test_only_marked_steps_count(traces: dict[str, Path]) -> None:
    trace = read_trace(str(traces["mlp"]))
    assert trace.step_count == STEPS and trace.notes == ()
    names = [event.name for event in trace.operators]
    assert names.count("aten::addmm") == 2 * STEPS
    inner = next(event for event in trace.operators if event.name == "aten::addmm")
    assert inner.parent is not None and inner.parent.name == "aten::linear"


def test_attention_lstm_and_table_by_hand(tmp_path: Path) -> None:
    """Unmarked: one step, said so. Fused attention takes five products backward."""
    table, cells = torch.nn.Embedding(100, 16), torch.nn.LSTM(16, 16, batch_first=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as recorded:
        x, _ = cells(table(torch.zeros(4, 7, dtype=torch.int64)))
        heads = x.view(4, 7, 2, 8).transpose(1, 2)
        torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).sum().backward()
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(str(path))
    found = trace_features(str(path))
    lstm, product = 2 * 4 * 7 * 4 * 16 * (16 + 16), 2 * 4 * 2 * 7 * 7 * 8
    assert found.features.flops == 3 * lstm + (2 + 5) * product
    assert found.steps == 1 and any("no ProfilerStep#" in note for note in found.notes)


def test_without_shapes_nothing_is_counted(tmp_path: Path) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        mlp()(torch.zeros(4, 32)).sum().backward()
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(str(path))
    found = trace_features(str(path))
    assert found.features.flops is None and found.features.mem_bytes is None
    assert any("record_shapes=True" in note for note in found.notes)


WORKERS = """
import sys
import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

def work(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    module = torch.nn.parallel.DistributedDataParallel(module)
    settings = dict(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True)
    with profile(**settings, schedule=schedule(wait=1, warmup=1, active=2)) as recorded:
        for _ in range(4):
            module(torch.zeros(4, 32)).sum().backward()
            recorded.step()
    recorded.export_chrome_trace(f"{folder}/rank{rank}.json.gz")
    dist.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), 2)
"""


@pytest.mark.slow
def test_two_workers_over_gloo(tmp_path: Path) -> None:
    """DDP sends every gradient once: S_w = 4 (n-1)/n W = 2 W for two."""
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=120, capture_output=True)
    weights = 32 * 64 + 64 + 64 * 10 + 10
    for rank in (0, 1):
        found = trace_features(str(tmp_path / f"rank{rank}.json.gz"))
        assert (found.features.arch, found.features.cnodes, found.steps) == ("allreduce", 2, 2)
        assert found.features.dense_weight_bytes == 2 * 4 * weights
        assert found.features.flops == 2 * 4 * (2 * 32 * 64 + 3 * 64 * 10)
        assert any("all-reduce" in note for note in found.notes)
