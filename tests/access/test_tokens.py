"""What tokens look like, and for how long one may ask."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plait.access.tokens import (
    digest,
    new_ticket,
    new_token,
    parse_hash,
    parse_lifetime,
    written_hash,
)
from plait.config_tables import TOKEN_HASH


def test_tokens_and_tickets_are_long_known_by_their_beginning_and_never_the_same() -> None:
    made = [new_token() for _ in range(20)] + [new_ticket() for _ in range(20)]
    assert len(set(made)) == 40
    assert all(text.startswith("plait_") and len(text) >= 49 for text in made)


def test_a_written_hash_is_what_the_configuration_takes_and_reads_back() -> None:
    written = written_hash(b"secret")
    assert TOKEN_HASH.fullmatch(written)
    assert parse_hash(written) == digest(b"secret")


@pytest.mark.parametrize(
    ("text", "lifetime"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("45s", timedelta(seconds=45)),
        (" 2w ", timedelta(weeks=2)),
    ],
)
def test_a_lifetime_is_a_number_and_a_unit(text: str, lifetime: timedelta) -> None:
    assert parse_lifetime(text) == lifetime


@pytest.mark.parametrize(
    "text", ["", "30", "d", "-1d", "0d", "1.5h", "3y", "999999w", "1d2h", "٣d"]
)
def test_any_other_lifetime_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(ValueError, match="like 30d"):
        parse_lifetime(text)
