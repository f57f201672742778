"""The price of a cluster's server, from its TOML table."""

from __future__ import annotations

import re

from graphcost.device_db._reader import Table
from graphcost.price import Price

PRICE_KEYS = ("price_per_hour_usd", "price_source", "price_date")

_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


def read_price(table: Table) -> Price | None:
    """The price with its source and date, None without one; raises :class:`DataFileError` for a part of it."""
    if not any(key in table.data for key in PRICE_KEYS):
        return None
    price = Price(table.number("price_per_hour_usd"), table.text("price_source"), table.text("price_date"))
    if not price.source.strip():
        table.fail("price_source", "is empty, but it must say where the price is from")
    if not _DATE.fullmatch(price.date):
        table.fail(
            "price_date", f"is {price.date!r}, but it must be a year, a month or a day: 2025, 2025-11, 2025-11-30"
        )
    return price
