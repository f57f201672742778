"""What can be varied one by one: rates of the hardware, sizes of the job. For sweeps and break-even values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphcost.errors import UsageError
from graphcost.placing import AnalysisOptions, Choice
from graphcost.registry import Registry
from graphcost.units import (
    format_bandwidth,
    format_bits,
    format_flops_per_s,
    parse_bandwidth,
    parse_flops_per_s,
    unit_of,
)

RANGE_VALUES = 5
"""Values of a range ``a..b`` that does not say how many."""

MOST_VALUES = 1000
"""assumed: no table of one resource is longer."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that a step depends on and an option sets.

    ``name``: the option's, without dashes. ``whole``: a count. ``parse`` and ``show``: text to the
    value in base units (bytes/s, FLOP/s, a count) and back. ``shown_unit``: what ``show`` counts, in
    base units. ``of``: the value under resolved options, None where there is none. ``put``: the options
    with another value.
    """

    name: str
    title: str
    whole: bool
    parse: Callable[[str], float]
    show: Callable[[float], str]
    of: Callable[[AnalysisOptions, Choice, int | None], float | None]
    put: Callable[[AnalysisOptions, float], AnalysisOptions]
    shown_unit: float = 1.0

    def flag(self, value: float) -> str:
        """The option that sets ``value``: ``--network 25Gb/s``."""
        return f"--{self.name} {self.show(value).replace(' ', '').replace(',', '')}"


RESOURCES: Registry[Resource] = Registry("resource", "network, nvlink, pcie, mem-bandwidth, peak, batch, gpus, ...")


def values_of(resource: Resource, text: str) -> tuple[float, ...]:
    """``"10,25,100Gb/s"`` or ``"10..100Gb/s:7"`` as values in base units, in the order given, none twice.

    A number without a unit has the last one's. A range has equal ratios between its values,
    ``RANGE_VALUES`` of them where it does not say; of a count, rounded.
    """
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise UsageError(f"--vary {resource.name}={text}: a value is missing between the commas")
    unit = unit_of(items[-1].rpartition("..")[2].partition(":")[0])
    found: list[float] = []
    try:
        for item in items:
            first, is_range, rest = item.partition("..")
            if not is_range:
                found.append(_value(resource, item, unit))
                continue
            last, _, count = rest.partition(":")
            ends = _value(resource, first, unit), _value(resource, last, unit)
            found += _between(resource, *ends, _count(count or str(RANGE_VALUES)))
    except UsageError as error:
        raise UsageError(f"--vary {resource.name}={text}: {error}") from error
    return tuple(dict.fromkeys(found))


def _value(resource: Resource, text: str, unit: str) -> float:
    return resource.parse(text if unit_of(text) else f"{text}{unit}")


def _count(text: str) -> int:
    if not text.strip().isdecimal() or not 2 <= int(text) <= MOST_VALUES:
        raise UsageError(f"a range ends in the number of its values, 2 to {MOST_VALUES}, not {text!r}")
    return int(text)


def _between(resource: Resource, first: float, last: float, count: int) -> list[float]:
    ratio = last / first
    found = [first * ratio ** (index / (count - 1)) for index in range(count - 1)]
    return [float(round(value)) if resource.whole else value for value in (*found, last)]


def _whole(text: str) -> float:
    stripped = text.strip().replace("_", "")
    if not stripped.isdecimal() or int(stripped) < 1:
        raise UsageError(f"{text.strip()!r} is not a whole number of at least 1")
    return float(int(stripped))


def _shown_count(value: float) -> str:
    return f"{value:,.0f}"


def _rate(
    name: str,
    title: str,
    field: str,
    of: Callable[[Choice], float | None],
    show: Callable[[float], str],
    parse: Callable[[str], float] = parse_bandwidth,
    shown_unit: float = 1.0,
) -> None:
    RESOURCES.add(
        name,
        Resource(
            name, title, False, parse, show, lambda _, choice, __: of(choice),
            lambda options, value: replace(options, **{field: value}),  # type: ignore[arg-type]
            shown_unit,
        ),
    )  # fmt: skip


def _number(name: str, title: str, of: Callable[[AnalysisOptions, Choice], float | None]) -> None:
    RESOURCES.add(
        name,
        Resource(
            name, title, True, _whole, _shown_count, lambda options, choice, _: of(options, choice),
            lambda options, value: replace(options, **{name: int(value)}),  # type: ignore[arg-type]
        ),
    )  # fmt: skip


def _nvlink(choice: Choice) -> float | None:
    link = choice.placement.cluster.server.scale_up
    return link.bytes_per_s if link is not None else None


def _with_batch(options: AnalysisOptions, value: float) -> AnalysisOptions:
    return replace(options, load=replace(options.load, batch=int(value)))


_rate(
    "network", "network of a whole server", "network_bytes_per_s",
    lambda choice: choice.placement.cluster.network.bytes_per_s, format_bits, shown_unit=1 / 8,
)  # fmt: skip
_rate("nvlink", "scale-up links of a GPU", "nvlink_bytes_per_s", _nvlink, format_bandwidth)
_rate(
    "pcie", "PCIe of a GPU", "pcie_bytes_per_s",
    lambda choice: choice.placement.cluster.server.pcie.bytes_per_s, format_bandwidth,
)  # fmt: skip
_rate(
    "mem-bandwidth", "device memory", "mem_bytes_per_s",
    lambda choice: choice.placement.cluster.device.mem_bytes_per_s, format_bandwidth,
)  # fmt: skip
_rate(
    "peak", "peak compute rate, all dtypes", "peak_flops_per_s",
    lambda choice: choice.placement.cluster.device.peak(str(choice.recipe.precision)), format_flops_per_s,
    parse_flops_per_s,
)  # fmt: skip
RESOURCES.add(
    "batch", Resource("batch", "samples per GPU", True, _whole, _shown_count, lambda _, __, batch: batch, _with_batch)
)
_number("gpus", "GPUs of the job", lambda options, choice: choice.placement.gpus)
_number("servers", "servers that the GPUs are spread over", lambda options, choice: choice.placement.servers)
_number("ps", "parameter servers", lambda options, choice: choice.placement.ps or None)
_number("accumulate", "micro-batches per step", lambda options, choice: options.accumulate)


def resource_list(names: Sequence[str] = ()) -> tuple[Resource, ...]:
    """Resources by name, all of them where none is named; raises ``UnknownNameError``."""
    return tuple(RESOURCES.find(name) for name in names or RESOURCES)
