"""The perimeter with values only: hosts, origins, tokens."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from plait.http.security import SECRET_PARAMETER, Perimeter, bearer, subprotocol_token

NOTES = "https://notes.example"


def perimeter(
    host: str = "127.0.0.1",
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    **apps: list[str],
) -> Perimeter:
    """`apps`: their own origins."""
    return Perimeter.build(host, 8760, hosts, origins, apps)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8760", "[::1]:8760", "LOCALHOST:1"])
def test_loopback_names_are_served_with_any_port(host: str) -> None:
    assert perimeter().host_allowed(host)


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "127.0.0.1.evil.example", "localhost.", "localhost:", "::1"]
)
def test_other_hosts_are_not(host: str | None) -> None:
    assert not perimeter().host_allowed(host)


def test_configured_hosts_and_the_bound_address_are_served() -> None:
    allowed = perimeter("192.168.1.5", hosts=["plait.home"])
    assert allowed.host_allowed("plait.home:8760")
    assert allowed.host_allowed("192.168.1.5:8760")


def test_binding_to_every_address_names_no_host() -> None:
    assert not perimeter("0.0.0.0").host_allowed("0.0.0.0:8760")


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:8760", "http://localhost:8760"])
def test_programs_and_own_pages_may_connect(origin: str | None) -> None:
    assert perimeter().origin_allowed(origin, "/v1/ws")


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://127.0.0.1:8760",
        "http://127.0.0.1",
        "http://evil.example",
        "http://127.0.0.1:8761",
    ],
)
def test_origins_must_match_scheme_host_and_port(origin: str) -> None:
    assert not perimeter().origin_allowed(origin, "/v1/ws")


@pytest.mark.parametrize("path", ["/v1/ws", "/v1/ticket", "/v1/status", "/metrics"])
def test_an_apps_origin_may_ask_only_where_its_token_is_asked_for(path: str) -> None:
    assert perimeter(notes=[NOTES]).origin_allowed(NOTES, path)
    assert not perimeter(notes=[NOTES]).origin_allowed(NOTES, "/healthz")


def test_an_apps_origin_counts_for_that_apps_tokens_alone() -> None:
    allowed = perimeter(origins=["https://all.example"], notes=[NOTES], other=[])
    assert allowed.origin_counts(NOTES, "notes")
    assert not allowed.origin_counts(NOTES, "other")
    assert not allowed.origin_counts(NOTES, None)
    assert all(allowed.origin_counts("https://all.example", app) for app in ("notes", "other"))
    assert allowed.origin_counts(None, "notes")


def test_tokens_come_from_the_header_or_the_subprotocol() -> None:
    encoded = base64.urlsafe_b64encode("sécret".encode()).rstrip(b"=").decode()
    assert bearer("Bearer abc") == b"abc"
    assert bearer("Bearer " + "clé".encode().decode("latin-1")) == "clé".encode()
    assert bearer("Bearer clé") == "clé".encode()
    assert bearer("Basic abc") is None
    assert subprotocol_token(["plait.v1", f"plait.token.{encoded}"]) == "sécret".encode()
    assert subprotocol_token(["plait.v1", "plait.token.!"]) is None


@given(secret=st.binary(min_size=1, max_size=64), others=st.lists(st.text(max_size=12), max_size=3))
def test_any_secret_survives_the_subprotocol(secret: bytes, others: list[str]) -> None:
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    assert subprotocol_token(["plait.v1", f"plait.token.{encoded}", *others]) == secret


@given(st.text(st.characters(max_codepoint=255), max_size=64))
def test_whatever_a_peer_offers_is_read_as_a_token_or_as_none(text: str) -> None:
    for shown in (
        bearer(text),
        bearer(f"Bearer {text}"),
        subprotocol_token([f"plait.token.{text}"]),
    ):
        assert shown is None or isinstance(shown, bytes)


@pytest.mark.parametrize(
    ("query", "secret"),
    [
        (b"token=x", True),
        (b"a=1&Access_Token=x", True),
        (b"api_key=x&b=2", True),
        (b"ticket", True),
        (b"tokens=5&max_token=1", False),
        (b"a=token", False),
        (b"", False),
    ],
)
def test_a_secret_is_known_by_the_name_it_has_in_a_url(query: bytes, secret: bool) -> None:
    assert bool(SECRET_PARAMETER.search(query)) == secret
