"""What a token is: 256 random bits that are shown once and kept as their SHA-256.

A slow hash would protect passwords people choose; nobody guesses 256 bits, so a fast one does, and
a server that looks at every connection's token stays fast. Does NOT know: where tokens are kept.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta
from typing import Final

TOKEN_BYTES: Final = 32
TOKEN_PREFIX: Final = "plait_"  # so that secret scanners, and people, know one when they see it
TICKET_PREFIX: Final = "plait_once_"
HASH_PREFIX: Final = "sha256:"

_LIFETIME = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MAX_LIFETIME: Final = timedelta(days=3660)


def new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def new_ticket() -> str:
    return TICKET_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def new_id() -> str:
    """Names a token in lists and logs; says nothing about it."""
    return "t-" + secrets.token_hex(4)


def digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def written_hash(token: bytes) -> str:
    """As `plait.toml` and the token file have it: `sha256:` and 64 hex digits."""
    return HASH_PREFIX + digest(token).hex()


def parse_hash(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix(HASH_PREFIX))


def parse_lifetime(text: str) -> timedelta:
    """`30d`, `12h`, `90m`, `45s` or `2w`. Raises ValueError saying what would do."""
    match = _LIFETIME.fullmatch(text.strip())
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None
    if lifetime is None or lifetime > MAX_LIFETIME:
        raise ValueError(
            f"write a number and s, m, h, d or w, like 30d; at most {MAX_LIFETIME.days}d"
        )
    return lifetime
