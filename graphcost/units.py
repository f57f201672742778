"""Quantities with units: the only module that knows what giga means.

Inside the package everything is in SI base units (bytes, seconds, FLOP/s);
this module parses what people write and formats what people read.
"""

from __future__ import annotations

import math
import re

from graphcost.errors import UsageError

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_QUANTITY = re.compile(r"^\s*([0-9][0-9_]*\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+)\s*(.*?)\s*$", re.I)

US_PER_S = 1e6
MS_PER_S = 1e3
MIB = 2**20
GIB = 2**30
MILLION = 1e6
GIGA = 1e9
TERA = 1e12
S_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6


def _split(text: str, expected: str) -> tuple[float, str]:
    match = _QUANTITY.match(text)
    if match is None:
        raise UsageError(f"{text!r} is not a quantity; write it like {expected}")
    return float(match[1].replace("_", "")), match[2]


def unit_of(text: str) -> str:
    """The unit that a quantity is written with, empty for a plain number.

    >>> unit_of("100 Gb/s"), unit_of("25")
    ('Gb/s', '')
    """
    return _split(text, "25Gb/s")[1]


def _prefix(prefix: str, text: str, expected: str) -> float:
    factor = _DECIMAL.get(prefix.lower(), _BINARY.get(prefix.lower()))
    if factor is None:
        raise UsageError(f"{text!r} has an unknown unit; write it like {expected}")
    return factor


def parse_bandwidth(text: str) -> float:
    """``"25 Gb/s"`` or ``"3.125GB/s"`` -> bytes per second; b is bit, B is byte.

    >>> parse_bandwidth("25Gb/s")
    3125000000.0
    >>> parse_bandwidth("900 GB/s")
    900000000000.0
    """
    expected = "25Gb/s (bits) or 3.1GB/s (bytes)"
    value, unit = _split(text, expected)
    match = re.fullmatch(r"([kmgtpKMGTP]?i?)(bit|bits|b|B|bps|Bps|byte|bytes)(?:/s|ps)?", unit)
    if match is None:
        raise UsageError(f"{text!r} is not a bandwidth; write it like {expected}")
    bits = match[2] in {"b", "bit", "bits", "bps"}
    return _positive(value * _prefix(match[1], text, expected) / (8 if bits else 1), text)


def parse_flops_per_s(text: str) -> float:
    """``"312 TFLOP/s"`` -> FLOP per second.

    >>> parse_flops_per_s("11TFLOP/s")
    11000000000000.0
    """
    expected = "312TFLOP/s"
    value, unit = _split(text, expected)
    match = re.fullmatch(r"([kmgtpe]?)(?:flops?(?:/s|ps)?|ops?/s|flop/s)", unit, re.I)
    if match is None:
        raise UsageError(f"{text!r} is not a compute rate; write it like {expected}")
    return _positive(value * _prefix(match[1], text, expected), text)


def parse_bytes(text: str) -> float:
    """``"80 GB"`` or ``"25MiB"`` -> bytes.

    >>> parse_bytes("25MiB")
    26214400.0
    """
    expected = "80GB or 25MiB"
    value, unit = _split(text, expected)
    match = re.fullmatch(r"([kmgtpKMGTP]?i?)(?:B|bytes?)?", unit)
    if match is None:
        raise UsageError(f"{text!r} is not a size in bytes; write it like {expected}")
    return _positive(value * _prefix(match[1], text, expected), text)


def parse_share(text: str) -> float:
    """``"40%"`` or ``"0.4"`` -> 0.4.

    >>> parse_share("40%")
    0.4
    """
    raw = text.strip()
    try:
        value = float(raw[:-1]) / 100 if raw.endswith("%") else float(raw)
    except ValueError:
        raise UsageError(f"{text!r} is not a share; write it like 40% or 0.4") from None
    if not 0 <= value <= 1:
        raise UsageError(f"{text!r} is not a share; it must lie between 0% and 100%")
    return value


_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """``"120ms"`` or ``"1.5 s"`` -> seconds.

    >>> parse_seconds("120ms")
    0.12
    """
    expected = "120ms or 1.5s"
    value, unit = _split(text, expected)
    if unit not in _SECONDS:
        raise UsageError(f"{text!r} is not a time; write it like {expected}")
    return _positive(value * _SECONDS[unit], text)


def parse_count(text: str) -> float:
    """``"30M"`` or ``"8.2GFLOP"`` -> a whole number; k, M, G, T are decimal.

    >>> parse_count("30M"), parse_count("8.2 GFLOP")
    (30000000.0, 8200000000.0)
    """
    expected = "30M or 8.2G"
    value, unit = _split(text, expected)
    match = re.fullmatch(r"([kmgtpe]?)(?:flops?|params?|parameters)?", unit, re.I)
    if match is None:
        raise UsageError(f"{text!r} is not a count; write it like {expected}")
    return _positive(float(round(value * _prefix(match[1], text, expected))), text)


def parse_usd(text: str) -> float:
    """``"2.50"``, ``"$2.50"`` or ``"2.50 USD"`` -> US dollars.

    >>> parse_usd("$2.50")
    2.5
    """
    value, unit = _split(text.strip().removeprefix("$"), "2.50 (US dollars)")
    if unit.lower() not in ("", "usd", "usd/h", "/h"):
        raise UsageError(f"{text!r} is not an amount in US dollars; write it like 2.50")
    return _positive(value, text)


def _positive(value: float, text: str) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"{text!r} must be more than zero and finite")
    return value


_PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def _scaled(value: float, unit: str) -> str:
    """Three significant digits with a decimal prefix; below a thousand, whole numbers stay whole."""
    for prefix, factor in _PREFIXES:
        if abs(value) >= factor * 0.9995:
            return f"{_three(value / factor)} {prefix}{unit}"
    return f"{value:.0f} {unit}" if float(value).is_integer() else f"{_three(value)} {unit}"


def _three(value: float) -> str:
    """Three significant digits without an exponent, for values below a thousand."""
    if value == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(value)))
    if round(abs(value), max(0, decimals)) >= 10.0 ** (3 - decimals):  # 9.999 rounds up to 10.0
        decimals -= 1
    return f"{value:.{min(max(0, decimals), 3)}f}"


def format_bytes(value: float) -> str:
    """Decimal bytes, three digits: ``102 MB``."""
    return _scaled(value, "B")


def format_flops(value: float) -> str:
    """``8.18 GFLOP``."""
    return _scaled(value, "FLOP")


def format_macs(value: float) -> str:
    """``4.09 GMAC``."""
    return _scaled(value, "MAC")


def format_count(value: float) -> str:
    """``25.6 M``."""
    return _scaled(value, "").strip()


def format_bandwidth(value: float) -> str:
    """Bytes per second: ``300 GB/s``."""
    return _scaled(value, "B/s")


def format_bits(value: float) -> str:
    """Bytes per second as a network rate in bits: ``25 Gb/s``."""
    return _scaled(value * 8, "b/s")


def format_flops_per_s(value: float) -> str:
    """``312 TFLOP/s``."""
    return _scaled(value, "FLOP/s")


def format_seconds(value: float) -> str:
    """``12.3 ms``: seconds, milliseconds, microseconds or nanoseconds, three digits."""
    if value == 0:
        return "0 s"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= factor * 0.9995:
            scaled = value / factor
            return f"{scaled:,.0f} {unit}" if scaled >= 999.5 else f"{_three(scaled)} {unit}"
    return f"{_three(value / 1e-9)} ns"


def format_joules(value: float) -> str:
    """``4.30 kJ``."""
    return _scaled(value, "J")


def format_kwh(value: float) -> str:
    """``5.46 kWh``; three digits, thousands in groups."""
    return f"{value:,.0f} kWh" if value >= 999.5 else f"{_small(value)} kWh"


def format_usd(value: float) -> str:
    """``$24.48`` from ten cents on, three digits below: ``$0.00141``."""
    if value >= 999.5:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.0995 else f"${_small(value)}"


def _small(value: float) -> str:
    """Three significant digits without an exponent, however small."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def format_share(value: float) -> str:
    """``41.3 %``."""
    return f"{value * 100:.1f} %"


def format_rate(value: float | None) -> str:
    """A plain rate (samples per second): ``3,229``; a dash where it is not known."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
