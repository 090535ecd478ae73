"""Options and profiles of the test suite.

EINSQL_HYPOTHESIS   dev (25 examples), ci (100, the same in every run) or debug (10, verbose); CI=true means ci
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import Verbosity, settings

import einsql as es

settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("debug", max_examples=10, deadline=None, verbosity=Verbosity.verbose)
settings.load_profile(os.environ.get("EINSQL_HYPOTHESIS") or ("ci" if os.environ.get("CI") == "true" else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-plans", action="store_true", help="rewrite the golden plans in queries/*.sql")


@pytest.fixture
def update_plans(request: pytest.FixtureRequest) -> bool:
    """Whether golden plans are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-plans"))


@pytest.fixture
def db() -> Iterator[es.Session]:
    """An empty session, closed after the test."""
    with es.connect() as session:
        yield session
