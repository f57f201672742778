"""What a server costs: a list price with its source and date."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """On-demand price of one whole server in US dollars per hour, and where and when it was listed."""

    usd_per_hour: float
    source: str
    date: str
