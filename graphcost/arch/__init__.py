"""Training architectures, one file each; importing this package registers them all."""

from graphcost.arch import allreduce, data_parallel, local, parameter_server, pearl, single, zero
from graphcost.arch._base import ARCHITECTURES, Architecture, Exchange, PaperTraffic, Payload, Placement, PsStyle

__all__ = [
    "ARCHITECTURES", "Architecture", "Exchange", "PaperTraffic", "Payload", "Placement", "PsStyle",
    "allreduce", "data_parallel", "local", "parameter_server", "pearl", "single", "zero",
]  # fmt: skip
