"""Training architectures, one file each; importing this package registers them all."""

from graphcost.arch import allreduce, data_parallel, local, parameter_server, pearl, product, single, zero
from graphcost.arch._base import ARCHITECTURES, Architecture, Exchange, PaperTraffic, Payload, Placement, PsStyle
from graphcost.arch.product import architecture_named

__all__ = [
    "ARCHITECTURES", "Architecture", "Exchange", "PaperTraffic", "Payload", "Placement", "PsStyle",
    "allreduce", "architecture_named", "data_parallel", "local", "parameter_server", "pearl", "product", "single",
    "zero",
]  # fmt: skip
