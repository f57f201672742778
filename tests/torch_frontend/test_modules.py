"""Torch modules against hand-worked numbers, torch's own counter, and other roads to the same network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import graphcost
from graphcost.cli.main import main
from graphcost.errors import MissingSizeError, ModelFileError, UsageError
from graphcost.graph import parameters, totals
from graphcost.ir import Phase
from graphcost.recipe import OPTIMIZERS, Recipe
from graphcost.training import plan_step

torch = pytest.importorskip("torch", reason="torch is an extra")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
nn = torch.nn


class Convolutional(nn.Module):  # type: ignore[misc, name-defined]
    """Grouped, depthwise, transposed convolutions, pooling, batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.grouped = nn.Conv2d(8, 16, 1, groups=4)
        self.up = nn.ConvTranspose2d(16, 4, 2, stride=2)
        self.head = nn.Linear(4, 10)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.bn(self.stem(x)))
        x = nn.functional.max_pool2d(nn.functional.gelu(self.grouped(self.depthwise(x))), 2)
        return self.head(nn.functional.adaptive_avg_pool2d(self.up(x), 1).flatten(1))


class Attention(nn.Module):  # type: ignore[misc, name-defined]
    """Grouped-query attention with a tied head, layer norm and embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.q, self.kv = nn.Linear(32, 32), nn.Linear(32, 16)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        batch, seq, _ = x.shape
        q = self.q(x).view(batch, seq, 8, 4).transpose(1, 2)
        k, v = self.kv(x).view(batch, seq, 2, 2, 4).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, is_causal=True)
        return self.head(self.norm(x + y.transpose(1, 2).reshape(batch, seq, 32)))


class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(32, 16)

    def forward(self, x: Any) -> Any:
        return self.gru(self.lstm(x)[0])[0]


IDS = torch.zeros(2, 7, dtype=torch.long)
# model, example, matmul FLOPs by hand, parameters, buffers
CASES: dict[str, tuple[Any, Any, int, int, int]] = {
    "convolutional": (
        Convolutional, torch.zeros(2, 3, 16, 16),
        2 * 2 * (8 * 8 * 8 * 27 + 8 * 8 * 8 * 9 + 8 * 8 * 16 * 2 + 4 * 4 * 16 * 4 * 4 + 10 * 4),
        8 * 27 + 16 + 8 * 9 + 8 + 16 * 2 + 16 + 16 * 4 * 4 + 4 + 50, 16,
    ),
    "attention": (
        Attention, IDS,
        2 * (2 * 7 * (32 * 32 + 32 * 16 + 32 * 50) + 2 * 8 * 7 * 7 * (4 + 4)),
        50 * 32 + 32 * 32 + 32 + 32 * 16 + 16 + 64, 0,
    ),
    "recurrent": (
        Recurrent, torch.zeros(2, 5, 8),
        2 * 2 * 5 * (2 * 4 * 16 * (8 + 16) + 2 * 4 * 16 * (32 + 16) + 3 * 16 * (32 + 16)),
        2 * (4 * 16 * (8 + 16) + 8 * 16) + 2 * (4 * 16 * (32 + 16) + 8 * 16) + 3 * 16 * (32 + 16) + 6 * 16, 0,
    ),
}  # fmt: skip


def loaded(name: str, **options: Any) -> Any:
    build, example, *_ = CASES[name]
    return graphcost.load(build(), (example,), **options)


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str) -> None:
    _, _, flops, params, buffers = CASES[name]
    found = totals(loaded(name))
    assert (found.cost.matmul_flops, found.params, found.buffers) == (flops, params, buffers)
    assert found.coverage.unknown == ()
    assert plan_step(loaded(name)).gradient_bytes == 4 * params


@pytest.mark.parametrize("name", CASES)
def test_an_archive_gives_the_same_without_weights(name: str, tmp_path: Path) -> None:
    build, example, *_ = CASES[name]
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(build().eval(), (example,)), path)
    live, archived = totals(loaded(name)), totals(graphcost.load(path))
    assert archived == live


def test_reading_an_archive_imports_no_torch(tmp_path: Path) -> None:
    import subprocess

    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Convolutional().eval(), (torch.zeros(2, 3, 16, 16),)), path)
    code = f"import sys, graphcost; graphcost.load({str(path)!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def counted(module: Any, example: Any, *, backward: bool) -> int:
    """torch's FlopCounterMode with math attention."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter:
        result = module(example)
        if backward:
            result.sum().backward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", ["convolutional", "attention"])
def test_forward_and_backward_against_torchs_counter(name: str) -> None:
    build, example, flops, *_ = CASES[name]
    plan = plan_step(loaded(name))
    assert counted(build(), example, backward=False) == flops
    ours = plan.total(Phase.FORWARD).matmul_flops + plan.total(Phase.BACKWARD).matmul_flops
    theirs = counted(build(), example, backward=True)
    # torch counts the weight gradient of a grouped convolution `groups` times.
    repeated = {"convolutional": 2 * 2 * (8 * 8 * 8 * 9 * (8 - 1) + 8 * 8 * 16 * 2 * (4 - 1)), "attention": 0}[name]
    assert ours == theirs - repeated


def test_modules_and_origins_are_the_users_own() -> None:
    nodes = [data["op"] for _, data in loaded("convolutional").nodes(data=True)]
    stem = next(node for node in nodes if node.op_type == "Conv")
    assert stem.module == "stem"
    assert f"{Path(__file__).name}:" in stem.origin and stem.origin.startswith("aten.conv2d")
    assert [param.name for _, param in stem.params] == ["stem.weight"]


def test_frozen_parameters_are_not_trained() -> None:
    module = Convolutional()
    module.stem.requires_grad_(False)
    plan = plan_step(graphcost.load(module, (torch.zeros(2, 3, 16, 16),)))
    assert "stem.weight" not in {gradient.param for gradient in plan.gradients}
    assert plan.gradient_bytes == 4 * (CASES["convolutional"][3] - 8 * 27)


def test_batch_regrows_the_example() -> None:
    found = totals(loaded("attention", batch=6))
    assert found.cost.matmul_flops == 3 * CASES["attention"][2]
    with pytest.raises(UsageError, match=r"lead with different sizes \[2, 3\]"):
        graphcost.load(nn.Bilinear(4, 4, 2), (torch.zeros(2, 4), torch.zeros(3, 4)), batch=8)


def test_dynamic_sizes_bind(tmp_path: Path) -> None:
    path = tmp_path / "dynamic.pt2"
    batch, seq = torch.export.Dim("b", min=2), torch.export.Dim("s", min=2)
    program = torch.export.export(nn.Linear(8, 4), (torch.zeros(3, 5, 8),), dynamic_shapes=({0: batch, 1: seq},))
    torch.export.save(program, path)
    with pytest.raises(MissingSizeError, match="input"):
        graphcost.load(path, batch=2)
    name = next(size for size in graphcost.sources.open_sizes(path) if size != "batch")
    assert totals(graphcost.load(path, batch=2, dims={name: 7})).cost.matmul_flops == 2 * 2 * 7 * 8 * 4
    assert totals(graphcost.load(path, input_shapes={"input": (4, 3, 8)})).cost.matmul_flops == 2 * 4 * 3 * 8 * 4


class Branches(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(8, 64), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        def dear(x: Any) -> Any:
            return self.wide(x).sum(-1)

        def cheap(x: Any) -> Any:
            return self.narrow(x).sum(-1)

        return torch.cond(x.sum() > 0, dear, cheap, (x,))


def test_a_condition_counts_the_dearer_branch_and_keeps_both_weights() -> None:
    graph = graphcost.load(Branches(), (torch.zeros(4, 8),))
    assert totals(graph).cost.matmul_flops == 2 * 4 * 8 * 64
    assert totals(graph).params == 8 * 64 + 64 + 8 * 2 + 2
    assert any("dearer branch" in note for note in graph.graph["model"].notes)


class DataDependent(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x @ x.T if x.sum().item() > 0 else x


def test_a_branch_on_data_is_named() -> None:
    with pytest.raises(ModelFileError, match=r"DataDependent: torch.export fails \(.*and so does tracing"):
        graphcost.load(DataDependent(), (torch.zeros(2, 2),))


class Stateful(nn.Module):  # type: ignore[misc, name-defined]
    """Keeps its last input: torch.export refuses tensors that are assigned on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.last: Any = None

    def forward(self, x: Any) -> Any:
        self.last = x
        return self.layer(x)


def test_what_does_not_export_is_traced_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("graph break at line 7")

    monkeypatch.setattr(torch.export, "export", refuse)
    graph = graphcost.load(Stateful(), (torch.zeros(3, 8),))
    assert totals(graph).cost.matmul_flops == 2 * 3 * 8 * 4 and totals(graph).params == 8 * 4 + 4
    assert plan_step(graph).gradient_bytes == 4 * (8 * 4 + 4)
    assert any("torch.export failed (RuntimeError: graph break at line 7)" in n for n in graph.graph["model"].notes)


def test_custom_operators_are_named_not_zero() -> None:
    with torch.library._scoped_library("acme", "DEF") as library:
        library.define("fancy(Tensor x) -> Tensor")
        library.impl("fancy", lambda x: x.clone(), "CompositeExplicitAutograd")
        library.impl("fancy", lambda x: torch.empty_like(x), "Meta")

        class Custom(nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any) -> Any:
                return torch.ops.acme.fancy(x)

        unknown = totals(graphcost.load(Custom(), (torch.zeros(2, 2),))).coverage.unknown
    assert [(entry.op_type, entry.count) for entry in unknown] == [("torch.acme.fancy", 1)]


def test_the_same_network_through_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="torch's ONNX exporter needs it")
    path = tmp_path / "model.onnx"
    torch.onnx.export(Convolutional().eval(), (torch.zeros(2, 3, 16, 16),), path, dynamo=True, verbose=False)
    onnx, live = totals(graphcost.load(path)), totals(loaded("convolutional"))
    assert onnx.cost.matmul_flops == live.cost.matmul_flops


def test_no_optimizer_is_inference() -> None:
    plan = plan_step(loaded("attention"), Recipe(optimizer=OPTIMIZERS["none"]))
    assert plan.backward == ()
    assert len(parameters(loaded("attention"))) == 7


SCRIPT = """
import torch

def model():
    return torch.nn.Linear(8, 4), (torch.zeros(3, 8),)

def bare():
    return torch.nn.Linear(8, 4)

def wrong():
    return 3

def broken():
    raise KeyError("weights.pt")

VALUE = 7
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_callable_of_a_file(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", f"{script}:model", "--format", "json", "--quiet"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["graph"]["matmul_flops"] == 2 * 3 * 8 * 4 and data["graph"]["params"] == 36
    assert data["placement"]["batch_per_gpu"] == 3
    assert main(["count", f"{script}:model", "--batch", "9", "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["graph"]["matmul_flops"] == 2 * 9 * 8 * 4


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("bare", 2, "needs example inputs"),
        ("wrong", 3, "returned int"),
        ("broken", 3, "the callable raised KeyError: 'weights.pt'"),
        ("VALUE", 2, "is not callable"),
        ("modle", 2, "has no 'modle'; did you mean 'model'?"),
    ],
)
def test_callables_that_do_not_work(
    script: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, says: str
) -> None:
    assert main(["analyze", f"{script}:{name}"]) == code
    err = capsys.readouterr().err
    assert says in err and "Traceback" not in err


def test_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"a": torch.zeros(2)}, path)
    with pytest.raises(ModelFileError, match="never opened"):
        graphcost.load(path)
    disguised = tmp_path / "weights.pt2"
    disguised.write_bytes(path.read_bytes())
    with pytest.raises(ModelFileError, match="never opened"):
        graphcost.load(disguised)
    disguised.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelFileError, match="not a readable"):
        graphcost.load(disguised)


def test_the_callers_module_keeps_its_modes_and_settings() -> None:
    from types import SimpleNamespace

    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    module[1].eval()  # a frozen norm
    module.config = SimpleNamespace(use_cache=True)
    graphcost.load(module, (torch.zeros(2, 4),))
    assert [part.training for part in module.modules()] == [True, True, False, True]
    assert module.config.use_cache is True
