"""Training architectures, one file each; importing this package registers them all."""

from graphcost.arch import allreduce, local, parameter_server, pearl, single, zero
from graphcost.arch._base import ARCHITECTURES, Architecture, Exchange, PaperTraffic, Payload, Placement, PsStyle

__all__ = [
    "ARCHITECTURES", "Architecture", "Exchange", "PaperTraffic", "Payload", "Placement", "PsStyle",
    "allreduce", "local", "parameter_server", "pearl", "single", "zero",
]  # fmt: skip
