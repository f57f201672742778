from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.errors import UnknownNameError
from graphcost.ir import OpCost, TensorSpec
from graphcost.registry import Registry

costs = st.builds(OpCost, *[st.integers(0, 2**70)] * 4)


@given(costs, costs, costs)
def test_costs_add_like_integers(a: OpCost, b: OpCost, c: OpCost) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + OpCost() == a
    assert (a + b).flops == a.flops + b.flops
    assert (a + b).bytes == a.bytes + b.bytes


@given(costs, st.integers(0, 1000))
def test_a_count_repeats_a_cost(a: OpCost, n: int) -> None:
    assert n * a == a * n
    assert (a * n).flops == n * a.flops
    assert a * 2 == a + a


@pytest.mark.parametrize(
    ("shape", "dtype", "size_bytes"),
    [((2, 3), "float32", 24), ((3,), "int4", 2), ((5,), "float4e2m1", 3), ((), "bool", 1), ((0, 7), "float64", 0)],
)
def test_bytes_are_packed_and_rounded_up(shape: tuple[int, ...], dtype: str, size_bytes: int) -> None:
    assert TensorSpec(shape, dtype).size_bytes == size_bytes


def test_sizes_are_exact_beyond_64_bits() -> None:
    assert TensorSpec((2**60, 2**60), "float32").size_bytes == 2**122


def test_registry_refuses_duplicates_and_suggests() -> None:
    things: Registry[int] = Registry("thing", "list them")
    things.add("alpha", 1)
    with pytest.raises(ValueError, match="registered twice"):
        things.add("alpha", 2)
    assert list(things) == ["alpha"]
    with pytest.raises(UnknownNameError, match=r"no thing named 'alhpa'; did you mean 'alpha'\? \(list them\)"):
        things.find("alhpa")
