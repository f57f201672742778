"""What options are made of: stacks of them, quantities with units, values that shells complete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, TypeVar

import click

from graphcost.cli import completing
from graphcost.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Options as one decorator, in the order of the help."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


class Quantity(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """A number with a unit; an error names the option that it was given to."""

    name = "quantity"

    def __init__(self, parse: Callable[[str], float]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, in base units."""
        if not isinstance(value, str):
            return float(value)
        try:
            return self._parse(value)
        except UsageError as error:
            raise UsageError(f"{param.opts[0]} {error}" if param is not None else str(error)) from error


listed = partial(click.option, shell_complete=completing.listed)
"""An option with a fixed list of values, which its metavar tells."""
