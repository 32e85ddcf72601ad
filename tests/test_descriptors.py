"""The limit on open files: raised as far as it goes, and quiet when it is reached."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from plait.descriptors import AcceptTrouble, allow_connections, count_open

ACCEPT = "socket.accept() out of system resource"


@pytest.fixture
def low_soft_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def soft_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@pytest.mark.usefixtures("low_soft_limit")
def test_the_soft_limit_rises_to_what_the_connections_need_and_never_falls() -> None:
    allow_connections(300)
    assert soft_limit() == 428
    allow_connections(10)
    assert soft_limit() == 428


@pytest.mark.usefixtures("low_soft_limit")
def test_the_hard_limit_is_as_far_as_it_goes_and_said() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        pytest.skip("no hard limit here")
    with structlog.testing.capture_logs() as logged:
        allow_connections(hard)
    assert soft_limit() == hard
    assert [entry["event"] for entry in logged] == ["descriptors.few"]


class Loop(asyncio.SelectorEventLoop):
    """Keeps what the default handler is given."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[dict[str, Any]] = []

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.faults.append(context)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def test_accepting_without_descriptors_is_said_once_in_a_while(loop: Loop) -> None:
    moments = iter((0.0, 0.1, 9.9, 10.0))
    handler = AcceptTrouble(clock=lambda: next(moments))
    full = {"message": ACCEPT, "exception": OSError(errno.EMFILE, "Too many open files")}
    with structlog.testing.capture_logs() as logged:
        for _ in range(4):
            handler(loop, full)
    assert [entry["event"] for entry in logged] == ["accept.failed"] * 2
    assert loop.faults == []


@pytest.mark.parametrize(
    "context",
    [
        {"message": "Exception in callback", "exception": KeyError(1)},
        {"message": ACCEPT, "exception": OSError(errno.EINVAL, "Invalid argument")},
        {"message": "Task was destroyed but it is pending!"},
    ],
)
def test_every_other_fault_is_reported_as_ever(loop: Loop, context: dict[str, Any]) -> None:
    AcceptTrouble()(loop, context)
    assert loop.faults == [context]


def test_one_more_file_is_one_more_descriptor() -> None:
    before = count_open()
    with Path(__file__).open():
        assert count_open() == before + 1
    assert count_open() == before


@pytest.mark.usefixtures("low_soft_limit")
def test_where_none_is_left_to_look_with_the_number_is_unknown() -> None:
    with contextlib.ExitStack() as files:
        with contextlib.suppress(OSError):
            while True:
                files.enter_context(Path(__file__).open())
        assert math.isnan(count_open())
