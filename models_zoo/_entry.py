"""The register of the zoo: what every entry says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.registry import Registry

Build = Callable[[Builder, int, Mapping[str, int]], Model]
"""(builder, batch, sizes) -> model."""

DOMAINS = ("image classification", "detection and segmentation", "language", "speech", "recommendation", "other")
"""What the zoo is listed by."""


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A model of the zoo. ``published_*`` are others' figures at ``dims`` and batch 1, with their source.

    ``published_params`` is exact, or rounded to a multiple of ``rounding``; ``published_macs``
    is None where nobody gives them. ``batch`` is its source's, None where that gives none.
    """

    title: str
    citation: str
    published_params: int
    published_source: str
    build: Build = field(repr=False)
    published_macs: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    domain: str = "image classification"
    rounding: int = 1
    batch: int | None = None


ZOO: Registry[ZooEntry] = Registry("zoo model", "graphcost zoo lists them")
