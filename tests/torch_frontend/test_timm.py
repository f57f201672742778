"""``timm:NAME``: FLOPs of both passes against torch's counter, parameters against the module's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphcost
from graphcost.errors import UsageError

pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.timm_models import NAMES, counted

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.skipif(not (find_spec("timm") and find_spec("torchvision")), reason="needs graphcost[timm]"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_against_torchs_counter(name: str) -> None:
    found, params, own = counted(name)
    assert found.torch_forward == found.forward
    assert found.torch_backward - found.excess == found.backward
    assert params == own


def test_an_unknown_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no timm model named 'resnet5O'; did you mean 'resnet50'"):
        graphcost.load("timm:resnet5O")


@pytest.mark.filterwarnings("error")
def test_a_renamed_model_is_built_without_a_warning() -> None:
    assert graphcost.load("timm:deit3_base_patch16_384_in21ft1k", batch=1).number_of_nodes() > 100


IMPORTS = "from graphcost.frontends.torch.libraries import import_timm; import_timm(); print('imported')"


def in_a_new_process(tmp_path: Path, *, extension: str | None) -> str:
    """What importing timm says where the only torchvision is the real one with ``extension`` for its own, or none."""
    site = tmp_path / "site"
    site.mkdir()
    for name in () if extension is None else ("torchvision", "torchvision.libs"):
        real = Path(find_spec("torchvision").origin).parents[1] / name  # type: ignore[union-attr, arg-type]
        if real.exists():
            shutil.copytree(real, site / name)
    for compiled in site.rglob("_C*.so"):
        compiled.write_text(str(extension), "utf-8")
    hidden = "import sys; sys.modules['torchvision'] = None; " if extension is None else ""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", hidden + IMPORTS], env=environment, capture_output=True, text=True, timeout=120
    )
    return done.stdout + done.stderr


def test_a_torchvision_built_for_another_torch(tmp_path: Path) -> None:
    assert in_a_new_process(tmp_path, extension="not a library").strip().endswith("imported")


def test_without_torchvision(tmp_path: Path) -> None:
    said = in_a_new_process(tmp_path, extension=None)
    assert "UsageError: timm cannot be imported (No module named 'torchvision" in said
    assert "pip install 'graphcost[timm]'" in said
