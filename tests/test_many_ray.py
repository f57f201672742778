"""``--backend ray`` on real Ray clusters: one of two workers on this machine, and one of two nodes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import LIGHT
from test_many import dies, fails_badly, halved

from graphcost.cli.main import main
from graphcost.errors import ModelFileError, UsageError, WorkerLostError
from graphcost.many import each, ray_cluster

pytestmark = pytest.mark.slow
pytest.importorskip("ray")


def waits(job: tuple[int, Path]) -> tuple[int, int]:
    """Says which process has item 3, and waits there until somebody has killed it."""
    number, folder = job
    told = folder / "process"
    if number == 3 and not told.exists():
        (folder / "being-written").write_text(str(os.getpid()))
        (folder / "being-written").rename(told)
        time.sleep(60)
    return number * number, os.getpid()


def test_order_is_kept_and_errors_are_results(capfd: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    found = list(each(halved, range(5), workers=2, backend="ray", done=done.append))
    assert [one if isinstance(one, int) else str(one) for one in found] == [0, "1 is odd", 1, "3 is odd", 2]
    assert isinstance(found[1], ModelFileError) and sorted(done) == [0, 1, 2, 3, 4]
    assert capfd.readouterr() == ("", "")


def test_a_worker_killed_from_outside_loses_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    jobs = [(number, tmp_path) for number in range(8)]
    results = each(waits, jobs, workers=2, backend="ray")
    first = [next(results) for _ in range(3)]
    killed = _process(tmp_path / "process")
    os.kill(killed, signal.SIGKILL)
    found = [*first, *results]
    assert [one[0] for one in found if not isinstance(one, Exception)] == [0, 1, 4, 9, 16, 25, 36, 49]
    assert found[3] != (9, killed)  # another process did it
    assert capfd.readouterr() == ("", "")


def _process(file: Path) -> int:
    for _ in range(600):
        if file.exists():
            return int(file.read_text())
        time.sleep(0.1)
    raise AssertionError("no worker took item 3")


def test_an_item_that_always_kills_its_worker_is_reported_and_the_others_are_there(tmp_path: Path) -> None:
    jobs = [(number, tmp_path, 99) for number in range(5)]
    found = list(each(dies, jobs, workers=2, backend="ray"))
    assert found[:3] + found[4:] == [0, 1, 4, 16]
    assert isinstance(found[3], WorkerLostError) and "died again each of the 3 times" in str(found[3])
    assert len(list(tmp_path.iterdir())) == 1 + ray_cluster.RETRIES


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A running cluster of two nodes of one CPU, which the environment names."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    yield cluster
    cluster.shutdown()


def test_a_running_cluster_is_used_and_goes_on(two_nodes: object, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        found = list(each(fails_badly, range(2), workers=2, backend="ray"))
        assert [str(one) for one in found] == ["UnpicklableError: needs two arguments"] * 2
        assert capfd.readouterr() == ("", "")


def test_a_folder_of_models_gives_what_one_process_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # relative paths are the caller's, in every worker
    folder = Path("models")
    folder.mkdir()
    for name in ("light_resnet50.onnx", "light_vgg19.onnx"):
        (folder / name).write_bytes((LIGHT / name).read_bytes())
    (folder / "broken.onnx").write_bytes(b"no model")
    command = ["analyze", "models", "--gpus", "8", "--exit-zero", "--format", "json"]
    found = []
    for more in ([], ["--workers", "2", "--backend", "ray"]):
        assert main([*command, *more]) == 3
        found.append(capsys.readouterr())
    serial, parallel = found
    assert parallel.out == serial.out and len(json.loads(serial.out)["results"]) == 2
    said = [[line for line in one.err.splitlines() if not line.endswith("...")] for one in found]
    assert said[0] == said[1] and any("broken.onnx" in line for line in said[0])


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"Ray, which is not installed: pip install 'graphcost\[ray\]'"):
        list(each(halved, [2], backend="ray"))


def test_a_cluster_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "not an address")
    with pytest.raises(UsageError, match="--backend ray: no cluster to work on"):
        list(each(halved, [2], backend="ray"))
