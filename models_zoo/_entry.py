"""The register of the zoo: what every entry says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.registry import Registry

Build = Callable[[Builder, int, Mapping[str, int]], Model]
"""(builder, batch, sizes) -> model."""


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A model of the zoo. ``published_*`` are others' figures at ``dims`` and batch 1, with their source."""

    title: str
    citation: str
    published_params: int
    published_macs: int
    published_source: str
    build: Build = field(repr=False)
    dims: Mapping[str, int] = field(default_factory=dict)


ZOO: Registry[ZooEntry] = Registry("zoo model", "graphcost zoo lists them")
