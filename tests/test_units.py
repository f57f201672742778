from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.errors import UsageError
from graphcost.units import (
    format_bits,
    format_bytes,
    format_count,
    format_seconds,
    parse_bandwidth,
    parse_bytes,
    parse_flops_per_s,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("25Gb/s", 25e9 / 8),
        ("25 Gbit/s", 25e9 / 8),
        ("25Gbps", 25e9 / 8),
        ("3.125GB/s", 3.125e9),
        ("900 GB/s", 900e9),
        ("1TB/s", 1e12),
        ("100Mb/s", 12.5e6),
        ("1GiB/s", 2**30),
    ],
)
def test_bandwidth_tells_bits_from_bytes(text: str, bytes_per_s: float) -> None:
    assert parse_bandwidth(text) == bytes_per_s


@pytest.mark.parametrize("text", ["25", "25G", "Gb/s", "25 Gbit/h", "-3GB/s", "0GB/s", "1e999GB/s", "nanGB/s", ""])
def test_what_is_no_bandwidth_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError):
        parse_bandwidth(text)


def test_other_quantities() -> None:
    assert parse_flops_per_s("312 TFLOP/s") == 312e12
    assert parse_flops_per_s("1.5PFLOPS") == 1.5e15
    assert parse_bytes("25MiB") == 25 * 2**20
    assert parse_share("40%") == parse_share("0.4") == 0.4
    for wrong in ("40", "-1%", "101%", "half"):
        with pytest.raises(UsageError):
            parse_share(wrong)


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0, "0 s"),
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (45e-6, "45.0 us"),
        (9.9e-5, "99.0 us"),
        (3e-9, "3.00 ns"),
        (2500, "2,500 s"),
    ],
)
def test_seconds(value_s: float, text: str) -> None:
    assert format_seconds(value_s) == text


def test_three_digits_everywhere() -> None:
    assert format_bytes(102_228_128) == "102 MB"
    assert format_bytes(8.19e6) == "8.19 MB"
    assert format_count(25_557_032) == "25.6 M"
    assert format_count(53_120) == "53.1 k"
    assert format_count(7) == "7"
    assert format_bytes(9.999e6) == "10.0 MB"
    assert format_bits(3.125e9) == "25.0 Gb/s"
    assert format_bytes(999_999) == "1.00 MB"


@given(st.floats(min_value=1e-3, max_value=1e6))
def test_bits_are_an_eighth_of_bytes(value: float) -> None:
    assert parse_bandwidth(f"{value:.6f}GB/s") == pytest.approx(8 * parse_bandwidth(f"{value:.6f}Gb/s"))
