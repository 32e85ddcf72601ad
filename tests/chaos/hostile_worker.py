"""A worker like any other until a stream's text says what it shall send instead of what it should.

`say=WORD!` in a script makes the first item of that stream the sign for the deed of that name; the
bytes of the deed follow the frame that holds the item. From the start of a stream that says
`slowly`, commands are heard a byte now and then. All else is the real worker's.
"""

from __future__ import annotations

import os
import random
import re
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from plait.engines import ipc, worker
from plait.engines.base import (
    Consumed,
    Event,
    Failed,
    Fault,
    Finished,
    Item,
    Prepared,
    Refused,
    Released,
    Starved,
)

SIGN = re.compile(rb'"(\w+)!0 ')
SLOW_SECONDS = 5.0  # for each byte of its commands

honest_encode = ipc.encode_events
honest_receive = worker._receive
slowing = threading.Event()
slow = threading.Event()
ending = threading.Event()
last_released = [0]


def all_events(job: int) -> list[Event]:
    """One of each kind that names a job."""
    fault = Fault("generation_failed", "Never mind.")
    return [
        Prepared(job, 1, 1, 1),
        Item(job, b'{"content":"ghost"}'),
        Item(job, b"\0\0\0\0", kind=1),
        Consumed(job, 1),
        Starved(job),
        Refused(job, fault),
        Finished(job, "stop", {}),
        Failed(job, fault, {}),
        Released(job, 0.0, 0, {}),
    ]


def garbage() -> bytes:
    return b"\xff" + random.Random(7).randbytes(4096)


def truncated() -> bytes:
    """Half a frame, and the end when the next one is due."""
    ending.set()
    return honest_encode(all_events(1))[:-9]


def oversized() -> bytes:
    return struct.pack("<I", 0xFFFFFFFF)


def empty() -> bytes:
    return struct.pack("<I", 0)


def nonsense() -> bytes:
    return ipc.encode_frame(b"\x81\xa3job\x01")


def strangers() -> bytes:
    """Events of jobs that were never asked for."""
    jobs = (0, -1, 10**6, 2**63 - 1)
    return b"".join(honest_encode(all_events(job)) for job in jobs)


def ghosts() -> bytes:
    """Events of a job that is over."""
    return honest_encode(all_events(last_released[0])) * 3


DEEDS: dict[bytes, Callable[[], bytes]] = {
    deed.__name__.encode(): deed
    for deed in (garbage, truncated, oversized, empty, nonsense, strangers, ghosts)
}


def encode(events: list[Event]) -> bytes:
    if ending.is_set():
        os._exit(0)
    data = honest_encode(events)
    for event in events:
        if isinstance(event, Released):
            last_released[0] = event.job
        if isinstance(event, Item) and (sign := SIGN.search(event.data)):
            data += DEEDS[sign[1]]()
    return data


def receive(sock: socket.socket) -> bytes:
    if slow.is_set():
        threading.Event().wait(SLOW_SECONDS)
        return sock.recv(1)
    data = honest_receive(sock)
    if b"say=slowly" in data:
        slowing.set()
    elif slowing.is_set() and b"start" in data:
        slow.set()
    return data


if __name__ == "__main__":
    replaced: Any = worker
    ipc.encode_events = encode
    replaced._receive = receive
    worker.main()
