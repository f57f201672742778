"""DL2's policies in files: what is read back, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from schedule_worlds import SETTINGS, Rates, job, ring, served

from graphcost.errors import DataFileError
from graphcost.sched import SlotView
from graphcost.sched.dl2.encoding import PolicySpec, SlotEncoder
from graphcost.sim import SimCluster, Simulation

torch = pytest.importorskip("torch")

from graphcost.sched.dl2 import checkpoint  # noqa: E402  # what follows needs torch
from graphcost.sched.dl2.network import NETWORKS, Network, probabilities  # noqa: E402

SPEC = PolicySpec(("a", "s"), window=3)


def view_of() -> SlotView:
    rates = Rates({"a": lambda w, p: float(w), "s": lambda w, p: w / (1 + w / p)})
    jobs = [job("r", ring("a"), 500, 2), job("s", served("s"), 900, 3, cap=4)]
    return Simulation(jobs, SimCluster.equal(2, 4, 3), rates, SETTINGS).view()


@pytest.mark.parametrize("kind", NETWORKS)
def test_policies_in_files(tmp_path: Path, kind: str) -> None:
    spec, path = PolicySpec(("a", "s"), 3, network=kind, hidden=8), tmp_path / "p.pt"
    network = Network(spec, value=False, seed=5)
    checkpoint.save_policy(path, network, {"seed": 5})
    policy, origin = checkpoint.load_policy(path)
    slot = SlotEncoder(view_of(), spec)
    assert policy.spec == spec and origin == {"seed": 5}
    assert np.array_equal(
        probabilities(policy.network, slot.state, slot.mask), probabilities(network, slot.state, slot.mask)
    )
    assert not list(tmp_path.glob("*.part"))


class _Evil:
    def __reduce__(self):  # type: ignore[no-untyped-def]
        return (Path.touch, (Path("/tmp/graphcost-was-run"),))


def test_files_that_are_no_policies(tmp_path: Path) -> None:
    """One line each, and nothing inside a file is run."""
    path = tmp_path / "p.pt"
    with pytest.raises(DataFileError, match=r"p\.pt: cannot be read \(No such file"):
        checkpoint.load_policy(path)
    path.write_bytes(b"not a policy at all")
    with pytest.raises(DataFileError, match="no file that `schedule train` writes; a policy was expected"):
        checkpoint.load_policy(path)
    torch.save({"kind": checkpoint.POLICY, "spec": _Evil()}, path)
    with pytest.raises(DataFileError, match="no file that `schedule train` writes"):
        checkpoint.load_policy(path)
    torch.save([1, 2], path)
    with pytest.raises(DataFileError, match="holds something else, not a policy"):
        checkpoint.load_policy(path)
    checkpoint.write(path, checkpoint.TRAINING, {})
    with pytest.raises(DataFileError, match="holds graphcost-dl2-training-1, not a policy"):
        checkpoint.load_policy(path)
    network = Network(SPEC, value=False, seed=0)
    checkpoint.save_policy(path, network, {})
    whole = checkpoint.read(path, checkpoint.POLICY)
    checkpoint.write(path, checkpoint.POLICY, {**whole, "spec": {**whole["spec"], "hidden": 32}})
    with pytest.raises(DataFileError, match=r"another shape: .* is \[64, 7\]; a shared network .* \[32, 7\]"):
        checkpoint.load_policy(path)
    checkpoint.write(path, checkpoint.POLICY, {**whole, "spec": {"width": 3}})
    with pytest.raises(DataFileError, match="its shape cannot be read"):
        checkpoint.load_policy(path)
    checkpoint.write(path, checkpoint.POLICY, {**whole, "spec": {**whole["spec"], "placement": "pakced"}})
    with pytest.raises(DataFileError, match=r"p\.pt: .*no placement named 'pakced'; did you mean 'packed'"):
        checkpoint.load_policy(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataFileError, match="no file that `schedule train` writes"):
        checkpoint.load_policy(path)
    assert not Path("/tmp/graphcost-was-run").exists()


@pytest.mark.parametrize(("packed", "placement"), [(True, "packed"), (False, "spread")])
def test_files_of_before_placements(tmp_path: Path, packed: bool, placement: str) -> None:
    path = tmp_path / "p.pt"
    checkpoint.save_policy(path, Network(SPEC, value=False, seed=0), {})
    whole = checkpoint.read(path, checkpoint.POLICY)
    old = {name: value for name, value in whole["spec"].items() if name != "placement"}
    checkpoint.write(path, checkpoint.POLICY, {**whole, "spec": {**old, "packed": packed}})
    assert checkpoint.load_policy(path)[0].spec.placement == placement


def test_the_trained_policies_that_come_along() -> None:
    """Small, readable, and as their page says."""
    folder = Path(__file__).parents[2] / "benchmarks" / "policies"
    page = folder.joinpath("README.md").read_text("utf-8")
    files = sorted(folder.glob("*.pt"))
    assert files
    for path in files:
        policy, origin = checkpoint.load_policy(path)
        assert path.stat().st_size < 2_000_000 and path.name in page and len(policy.spec.models) >= 6
        assert (
            f"{origin['validation_mean_jct_s']:,.0f} s after {origin['updates']:,} updates".replace(",", " ") in page
        )
