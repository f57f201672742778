"""Policies and training states as torch files, read as data alone (``weights_only``), written whole or not at all.

A policy file holds a shape, weights and where they come from; a training state everything that a run needs to go
on as if it had never stopped.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphcost.errors import DataFileError, UnknownNameError, UsageError
from graphcost.sched.dl2.encoding import PolicySpec
from graphcost.sched.dl2.network import Network, torch_module
from graphcost.sched.dl2.policy import Policy

POLICY, TRAINING = "graphcost-dl2-policy-1", "graphcost-dl2-training-1"


def save_policy(path: Path, network: Network, origin: Mapping[str, Any]) -> None:
    """``origin``: plain values that say how it was made."""
    write(
        path, POLICY, {"spec": _plain(network.spec), "weights": network.layers.state_dict(), "origin": dict(origin)}
    )


def load_policy(path: Path, *, sampled: bool = False) -> tuple[Policy, dict[str, Any]]:
    """A policy and its origin; raises ``DataFileError`` for a file that is none, or one of another shape."""
    found = read(path, POLICY)
    network = Network(spec_of(path, found), value=False, seed=0)
    load_weights(path, network, found["weights"])
    return Policy(network, sampled), dict(found["origin"])


def spec_of(path: Path, found: Mapping[str, Any]) -> PolicySpec:
    """The shape that a file declares."""
    try:
        spec = {**found["spec"], "models": tuple(found["spec"]["models"])}
        return PolicySpec(**renamed(spec))
    except (KeyError, TypeError, UnknownNameError) as error:
        raise DataFileError(f"{path}: its shape cannot be read ({error}); written by another version?") from error


def renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """As they are called now: files of before ``placement`` say ``packed``, true or false."""
    now = dict(options)
    if "packed" in now:
        now["placement"] = "packed" if now.pop("packed") else "spread"
    return now


def load_weights(path: Path, network: Network, weights: Mapping[str, Any]) -> None:
    """Into ``network``; raises ``DataFileError`` naming the first that does not fit."""
    wanted = network.layers.state_dict()
    for name in (*wanted, *weights):
        have = list(weights[name].shape) if name in weights else None
        needs = list(wanted[name].shape) if name in wanted else None
        if have != needs:
            raise DataFileError(
                f"{path}: weights of another shape: {name} is {have or 'missing'}; a {network.spec.network} network "
                f"of {len(network.spec.models)} models and {network.spec.hidden} units has {needs or 'none'}"
            )
    network.layers.load_state_dict(weights)


def write(path: Path, kind: str, contents: Mapping[str, Any]) -> None:
    """By renaming: a killed writer leaves the file before. Raises ``UsageError`` where it cannot be written."""
    torch = torch_module()
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("wb") as file:
            torch.save({"kind": kind, **contents}, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def read(path: Path, kind: str) -> dict[str, Any]:
    """The contents of a file of this kind; raises ``DataFileError``."""
    torch = torch_module()
    what = "a policy" if kind == POLICY else "a training state"
    try:
        whole = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        found = torch.load(whole, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever its unpickler meets
        raise DataFileError(f"{path}: no file that `schedule train` writes; {what} was expected") from error
    have = found.get("kind") if isinstance(found, dict) else None
    if have != kind:
        raise DataFileError(f"{path}: holds {have or 'something else'}, not {what} ({kind}) of `schedule train`")
    contents: dict[str, Any] = found
    return contents


def _plain(spec: PolicySpec) -> dict[str, Any]:
    return {**asdict(spec), "models": list(spec.models)}
