"""Forward and backward FLOPs equal torch's own counter, but for amounts that are derived."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is an extra")
pytest.importorskip("transformers", reason="transformers is an extra")
from benchmarks.flop_counter import compare  # noqa: E402 - needs both
from benchmarks.flop_models import COUNTED  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

QUICK = ("lstm tagger", "encoder-decoder", "dlrm", "gated cnn", "u-net", "gru speech")
# What torch counts more in dW of grouped convolutions: (groups - 1) x 2 x batch x outputs x C/g x kernel.
EXCESS = {
    "gru speech": 3 * 2 * 2 * 50 * 64 * 10 * 5,
    # 3x3 depthwise, 9 MACs an output: channels x side^2, times channels - 1
    "mobilenet-v2": 2 * 9 * sum(
        count * width * side**2 * (width - 1)
        for width, side, count in (
            (32, 112, 1), (96, 56, 1), (144, 56, 1), (144, 28, 1), (192, 28, 2), (192, 14, 1), (384, 14, 4),
            (576, 14, 2), (576, 7, 1), (960, 7, 3),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else (pytest.mark.slow,)) for name in COUNTED]
)
def test_against_torchs_counter(name: str) -> None:
    found = compare(COUNTED[name]())
    assert found.excess == EXCESS.get(name, 0)
    assert found.torch_forward == found.forward
    assert found.torch_backward - found.excess == found.backward
