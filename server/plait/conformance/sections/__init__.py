"""The cases, in modules by what they ask about; importing a module registers its cases.

Does NOT know how they are run.
"""

from __future__ import annotations

import importlib

MODULES = (
    "handshake",
    "access",
    "ids",
    "pending",
    "cancelling",
    "terminals",
    "flow",
    "deadlines",
    "chatting",
    "calling",
    "speaking",
    "transcribing",
    "embedding",
    "inputs",
    "faults",
    "json_reading",
    "frames",
    "floods",
    "races",
    "isolation",
    "waits",
)


def load() -> None:
    """Register every case; the order is that of MODULES."""
    for name in MODULES:
        importlib.import_module(f"{__name__}.{name}")
