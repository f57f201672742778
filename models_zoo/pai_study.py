"""Tables IV and V of the Alibaba-PAI workload study (Wang et al. 2019, arXiv 1910.05930): six case studies.

Recalled figures: no copy of the study was at hand. ``confidence`` says how sure the recollection is, and
the arithmetic of the sizes against known networks (tests) makes most of them plausible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

STUDY = "Wang et al. 2019, arXiv 1910.05930 (Alibaba-PAI)"


@dataclass(frozen=True, slots=True)
class CaseStudy:
    """A row of both tables. Sizes hold optimizer slots: ``copies`` values a weight (derived).

    ``batch`` counts samples as the zoo's model does, ``flops`` to ``weight_bytes`` are a step's on one
    cNode; ``weight_bytes`` is Table V's network traffic, also of a job on one GPU, which sends nothing.
    """

    title: str
    arch: str
    gpus: int
    batch: int
    optimizer: str
    copies: int
    dense_bytes: float
    embedding_bytes: float
    flops: float
    mem_bytes: float
    input_bytes: float
    weight_bytes: float
    confidence: str

    @property
    def params(self) -> int:
        """Weights in all: fp32, ``copies`` of each."""
        return int((self.dense_bytes + self.embedding_bytes) / (4 * self.copies))


_AR = "allreduce"
CASES: Mapping[str, CaseStudy] = MappingProxyType(
    {
        "pai-resnet50":
            CaseStudy("ResNet50", _AR, 8, 64, "momentum", 2, 204e6, 0.0, 1.56e12, 31.9e9, 38e6, 357e6, "high"),
        # 6,144 tokens: sentences of 32 (assumed)
        "pai-nmt":
            CaseStudy("NMT", _AR, 8, 192, "adam", 4, 706e6, 819e6, 2.5e12, 101.6e9, 22e3, 1.33e9, "medium"),
        "pai-bert":
            CaseStudy("BERT", _AR, 8, 12, "adam", 3, 1e9, 284e6, 2.1e12, 107.3e9, 46e3, 1.5e9, "medium"),
        "pai-speech":
            CaseStudy("Speech", "single", 1, 32, "momentum", 2, 416e6, 0.0, 7.9e12, 20.4e9, 804e6, 728e6, "medium"),
        "pai-multi-interests":
            CaseStudy("Multi-Interests", "ps", 8, 2048, "momentum", 2, 1.19e6, 239.45e9, 105.8e9, 100.4e9, 261e6,
                      122e6, "medium"),
        "pai-gcn":
            CaseStudy("GCN", "pearl", 8, 512, "momentum", 2, 207e6, 54e9, 330.7e9, 25.79e9, 1.2e6, 3e9, "medium"),
    }
)  # fmt: skip
"""By the zoo's names. 8 GPUs: traffic of 3.5 W is a ring of eight. Copies and optimizers follow from the sizes
(momentum stands for any optimizer of one slot); NMT's four copies fit Transformer base and are weak."""
