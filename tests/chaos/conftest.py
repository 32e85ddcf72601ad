"""Servers that the chaos may hurt, each shared by the tests that hurt it alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.rig import wait_ready
from tests.live.server import LiveServer, live_server


@pytest.fixture(scope="module")
def all_methods() -> Iterator[LiveServer]:
    """All four methods by script, each with a worker of its own."""
    with live_server("scripted", "scripted", "scripted", "scripted", slots=4) as running:
        yield running
        wait_ready(running)
