"""Training architectures, one file each; importing this package registers them all."""

from graphcost.arch import allreduce, async_ps, data_parallel, local, parameter_server, pearl, product, single, zero
from graphcost.arch._base import (
    ARCHITECTURES,
    Architecture,
    Exchange,
    PaperTraffic,
    Payload,
    Placement,
    PsOn,
    PsStyle,
)
from graphcost.arch.product import architecture_named

SYNCHRONOUS = tuple(name for name in ARCHITECTURES if name != async_ps.AsyncParameterServer.name)
"""Names of architectures under which a step is the same step: what may stand for another without being asked."""

__all__ = [
    "ARCHITECTURES",
    "SYNCHRONOUS",
    "Architecture",
    "Exchange",
    "PaperTraffic",
    "Payload",
    "Placement",
    "PsOn", "PsStyle",
    "allreduce",
    "architecture_named",
    "async_ps",
    "data_parallel",
    "local",
    "parameter_server",
    "pearl",
    "product",
    "single",
    "zero",
]  # fmt: skip
