"""Fixtures for every test."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)  # a slow machine is no failure
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
