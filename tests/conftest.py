"""What every test gets: asyncio as the one event loop, an alarm on blocking it, and Hypothesis
without a deadline, as an example that takes 200 ms says something of the machine only.

Fixtures with a domain live next to their tests; fakes live in `tests/fakes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

settings.register_profile("plait", settings(), deadline=None)
settings.load_profile("plait")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The gateway is asyncio only (uvicorn, task groups), so the tests run once, on it."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_blocking_in_the_loop() -> Iterator[BlockBuster]:
    """Plait's own code raises BlockingError when it blocks a running event loop."""
    with blockbuster_ctx("plait") as alarm:
        yield alarm
