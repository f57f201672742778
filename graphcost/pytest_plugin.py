"""The pytest plugin: ``assert_not_communication_bound`` as a fixture, its options in the ini file.

pytest imports this module in every run of every project where graphcost is installed, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphcost import testing
from graphcost.errors import GraphcostError

INI_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "max_comm_share": ("largest share of a step that communication may take, e.g. 40% (default 50%)", str),
    "cluster": ("cluster of `graphcost devices`, or a TOML file", str),
    "gpus": ("GPUs of a job", int),
    "arch": ("training architecture, e.g. allreduce, ps, zero3", str),
    "on_doubt": ("fail, warn or pass, where the prediction's interval straddles the limit", str),
}
"""Option of the assertion -> its help, and what reads its text; ``graphcost_`` goes before the name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini options."""
    for name, (text, _) in INI_OPTIONS.items():
        parser.addini(f"graphcost_{name}", f"assert_not_communication_bound: {text}.", default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Hand what the ini file says to the assertion; a wrong value ends the run before any test."""
    found = {}
    for name, (_, read) in INI_OPTIONS.items():
        value = config.getini(f"graphcost_{name}")
        if value is not None and value != "":
            found[name] = _read(f"graphcost_{name}", str(value).strip(), read)
    if "max_comm_share" in found:
        found["max_comm_share"] = _share(found["max_comm_share"])
    if found.get("on_doubt", "warn") not in testing.DOUBTS:
        raise pytest.UsageError(f"graphcost_on_doubt = {found['on_doubt']}: one of {', '.join(testing.DOUBTS)}")
    testing.set_project_defaults(found)


def pytest_unconfigure() -> None:
    """Leave nothing behind: runs of pytest may share a process."""
    testing.set_project_defaults({})


@pytest.fixture(scope="session")
def assert_not_communication_bound() -> Callable[..., Any]:
    """``graphcost.testing.assert_not_communication_bound``: fails where a model is communication-bound."""
    return testing.assert_not_communication_bound


def _read(option: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError:
        raise pytest.UsageError(f"{option} = {text}: not a whole number") from None


def _share(text: str) -> float:
    from graphcost.units import parse_share

    try:
        return parse_share(text)
    except GraphcostError as error:
        raise pytest.UsageError(f"graphcost_max_comm_share = {error}") from None
