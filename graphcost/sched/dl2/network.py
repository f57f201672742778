"""Policy and value networks over the state matrix (torch, an extra).

``dense``: DL2's own, two fully connected layers over the whole flattened window (its paper: 2 x 256, ReLU);
every position learns for itself. ``shared``: the same small layers for every job, joined with the sum over the
window; the order of jobs does not matter to it and what it learns of one job holds for all (after Zaheer et al.,
Deep Sets, NeurIPS'17; not in DL2's paper). No normalisation: that of DL2's code never leaves its initial state.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcost.errors import UnknownNameError, UsageError
from graphcost.registry import did_you_mean
from graphcost.sched.dl2.encoding import Mask, PolicySpec, State

if TYPE_CHECKING:
    import torch

NETWORKS = ("shared", "dense")

SCALES = (1 / 16, 1.0, 4.0, 1 / 8, 1 / 8)
"""Bring slots waited, remaining and dominant share, workers and servers to about one. assumed: caps of 16 or 32."""


def torch_module() -> Any:
    """torch; raises ``UsageError`` where it is missing."""
    try:
        import torch
    except ImportError:
        raise UsageError("DL2 learns with torch: pip install 'graphcost[torch,schedule]'") from None
    return torch


class Network:
    """States to one number an action (policy) or to one number (value)."""

    def __init__(self, spec: PolicySpec, *, value: bool, seed: int) -> None:
        torch = torch_module()
        if spec.network not in NETWORKS:
            raise UnknownNameError(
                f"no network named {spec.network!r}{did_you_mean(spec.network, NETWORKS)} ({', '.join(NETWORKS)})"
            )
        self.spec, self._value = spec, value
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = _dense(spec, value) if spec.network == "dense" else _shared(spec, value)
        self._scale = torch.tensor(scales(spec))

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """``[n, window, columns]`` to logits ``[n, 3 window + 1]``, or to values ``[n]``."""
        torch = torch_module()
        scaled = states * self._scale
        if self.spec.network == "dense":
            out = self.layers["all"](scaled.flatten(1))
            return out.squeeze(1) if self._value else out
        there = (states[..., : len(self.spec.models) + 2] != 0).any(-1, keepdim=True)
        rows = self.layers["row"](scaled) * there
        whole = rows.sum(1) / 8  # assumed: as many jobs as are usual at once, to keep the sum near one
        joined = self.layers["own"](rows) + self.layers["others"](whole).unsqueeze(1)
        each = self.layers["head"](joined.relu())
        if self._value:
            return (each * there).sum((1, 2)) + self.layers["whole"](whole).squeeze(1)
        return torch.cat((each.flatten(1), self.layers["whole"](whole)), 1)

    def parameters(self) -> list[torch.Tensor]:
        """All weights."""
        return list(self.layers.parameters())


def log_probabilities(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Of the allowed actions, as of the current policy; masked ones get a finite, hopeless number.

    DL2's code feeds the stored probabilities of the acting policy into the gradient; this is the gradient of the
    policy at hand.
    """
    return logits.masked_fill(~masks, -1e9).log_softmax(1)


def probabilities(network: Network, state: State, mask: Mask) -> np.ndarray:
    """Of every action in one state; float64, sums to one, zero where masked."""
    torch = torch_module()
    with torch.inference_mode():
        logits = network(torch.from_numpy(state[None]))[0].numpy().astype(np.float64)
    allowed = np.where(mask, logits, -np.inf)
    weights = np.exp(allowed - allowed.max())
    odds: np.ndarray = weights / weights.sum()
    return odds


def scales(spec: PolicySpec) -> list[float]:
    """A factor a column of the state."""
    return [*([1.0] * len(spec.models)), *SCALES]


def layers(*widths: int) -> Any:
    """Fully connected, ReLU between."""
    torch = torch_module()
    made: list[Any] = []
    for into, out in itertools.pairwise(widths):
        made += [torch.nn.Linear(into, out), torch.nn.ReLU()]
    return torch.nn.Sequential(*made[:-1])


def _dense(spec: PolicySpec, value: bool) -> Any:
    torch = torch_module()
    out = 1 if value else spec.actions
    return torch.nn.ModuleDict({"all": layers(spec.window * spec.columns, spec.hidden, spec.hidden, out)})


def _shared(spec: PolicySpec, value: bool) -> Any:
    torch = torch_module()
    width = spec.hidden
    row = torch.nn.Sequential(layers(spec.columns, width, width), torch.nn.ReLU())
    return torch.nn.ModuleDict(
        {
            "row": row,
            "own": torch.nn.Linear(width, width),
            "others": torch.nn.Linear(width, width, bias=False),
            "head": torch.nn.Linear(width, 1 if value else 3),
            "whole": layers(width, width, 1),
        }
    )
