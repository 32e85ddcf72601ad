"""One scripted server for all tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.server import LiveServer, live_server


@pytest.fixture(scope="package")
def shared_server() -> Iterator[LiveServer]:
    with live_server(slots=4, max_streams=64) as running:
        yield running


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The shared server, idle before and after."""
    shared_server.wait_idle()
    yield shared_server
    shared_server.wait_idle()
