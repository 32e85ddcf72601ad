"""Processes that these tests start can import the tests' scripted ears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.whisper.rig import importable_tests


@pytest.fixture(scope="session", autouse=True)
def _importable() -> Iterator[None]:
    with importable_tests():
        yield
