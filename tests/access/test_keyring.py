"""Which tokens open, for whom, and until when."""

from __future__ import annotations

from hypothesis import given, strategies as st

from plait.access.keyring import ANYBODY, Grant, Keyring
from plait.access.tokens import digest

GOOD = Grant(digest(b"good"), "notes", expires=100.0)


def test_a_token_opens_until_it_expires_and_nothing_else_does() -> None:
    keyring = Keyring([GOOD], required=True)
    assert keyring.find(b"good", 99.9) == GOOD
    assert keyring.find(b"good", 100.0) is None
    assert keyring.find(b"goo", 0.0) is None
    assert keyring.find(b"", 0.0) is None
    assert keyring.find(None, 0.0) is None


def test_a_token_hashed_as_nothing_opens_nothing() -> None:
    assert Keyring([Grant(digest(b""), None)], required=True).find(None, 0.0) is None


def test_a_server_without_tokens_takes_anybody_whatever_they_show() -> None:
    keyring = Keyring([], required=False)
    assert keyring.find(None, 0.0) is ANYBODY
    assert keyring.find(b"left over", 0.0) is ANYBODY
    assert keyring.renew(ANYBODY, 0.0) is ANYBODY
    assert Keyring([], required=True).renew(ANYBODY, 0.0) is None


def test_a_grant_is_renewed_with_what_its_token_is_worth_now() -> None:
    longer = Grant(GOOD.digest, "notes", expires=500.0)
    assert Keyring([longer], required=True).renew(GOOD, 200.0) == longer
    assert Keyring([GOOD], required=True).renew(GOOD, 200.0) is None
    assert Keyring([Grant(GOOD.digest, "other")], required=True).renew(GOOD, 0.0) is None
    assert Keyring([], required=True).renew(GOOD, 0.0) is None


def test_hashes_do_not_show_in_what_is_printed() -> None:
    assert GOOD.digest.hex() not in repr(GOOD)
    assert repr(GOOD.digest) not in repr(GOOD)


@given(
    known=st.dictionaries(st.binary(max_size=8), st.floats(0, 100) | st.none(), max_size=8),
    shown=st.binary(max_size=8) | st.none(),
    now=st.floats(0, 100),
)
def test_exactly_the_living_tokens_open(
    known: dict[bytes, float | None], shown: bytes | None, now: float
) -> None:
    grants = [Grant(digest(token), "a", until) for token, until in known.items()]
    found = Keyring(grants, required=True).find(shown, now)
    until = known.get(shown) if shown is not None else None
    living = shown is not None and shown in known and (until is None or until > now)
    assert (found is not None) == living
    assert found is None or found.digest == digest(shown or b"")
