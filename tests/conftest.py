"""What every test gets: asyncio as the one event loop, and an alarm on blocking it.

Fixtures with a domain live next to their tests; fakes live in `tests/fakes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The gateway is asyncio only (uvicorn, task groups), so the tests run once, on it."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_blocking_in_the_loop() -> Iterator[BlockBuster]:
    """Plait's own code raises BlockingError when it blocks a running event loop."""
    with blockbuster_ctx("plait") as alarm:
        yield alarm
