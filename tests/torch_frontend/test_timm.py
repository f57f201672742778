"""``timm:NAME``: FLOPs of both passes against torch's counter, parameters against the module's own."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import graphcost
from graphcost.errors import UsageError

pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.timm_models import NAMES, counted, import_timm

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.skipif(not (find_spec("timm") and find_spec("torchvision")), reason="needs graphcost[timm]"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_against_torchs_counter(name: str) -> None:
    found, params, own = counted(name)
    assert found.torch_forward == found.forward
    assert found.torch_backward - found.excess == found.backward
    assert params == own


def test_an_unknown_name_is_a_usage_error() -> None:
    import_timm()
    with pytest.raises(UsageError, match="no timm model named 'resnet5O'; did you mean 'resnet50'"):
        graphcost.load("timm:resnet5O")
