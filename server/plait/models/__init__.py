"""Where weights come from, how they are verified and converted, and where they are kept.

Used by the command line before the server starts; workers only get an `InstalledModel`. Does NOT
know: engines, streams, sockets; it never resolves a name that a client sent.
"""

from plait.models.errors import (
    DiskFull,
    ModelDamaged,
    SourceUnavailable,
    StoreError,
    StoreUnwritable,
    UnknownModel,
    UnsupportedModel,
)
from plait.models.store import InstalledModel, ModelStore

__all__ = [
    "DiskFull",
    "InstalledModel",
    "ModelDamaged",
    "ModelStore",
    "SourceUnavailable",
    "StoreError",
    "StoreUnwritable",
    "UnknownModel",
    "UnsupportedModel",
]
