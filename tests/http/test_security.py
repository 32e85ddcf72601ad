"""The perimeter with values only: hosts, origins, tokens."""

from __future__ import annotations

import base64

import pytest

from plait.http.security import Perimeter, bearer, subprotocol_token


def perimeter(host: str = "127.0.0.1", **fields: list[str]) -> Perimeter:
    hosts, origins = fields.get("hosts", []), fields.get("origins", [])
    return Perimeter.build(host, 8760, hosts, origins, fields.get("tokens", []))


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
    assert perimeter().origin_allowed(origin)


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
    assert not perimeter().origin_allowed(origin)


def test_without_tokens_nobody_needs_one_and_with_tokens_everybody_does() -> None:
    assert perimeter().token_allowed(None)
    guarded = perimeter(tokens=["secret", "other"])
    assert guarded.token_allowed(b"other")
    assert not guarded.token_allowed(b"secre")
    assert not guarded.token_allowed(None)


def test_tokens_come_from_the_header_or_the_subprotocol() -> None:
    encoded = base64.urlsafe_b64encode("sécret".encode()).rstrip(b"=").decode()
    assert bearer("Bearer abc") == b"abc"
    assert bearer("Bearer " + "clé".encode().decode("latin-1")) == "clé".encode()
    assert bearer("Bearer clé") == "clé".encode()
    assert bearer("Basic abc") is None
    assert subprotocol_token(["plait.v1", f"plait.token.{encoded}"]) == "sécret".encode()
    assert subprotocol_token(["plait.v1", "plait.token.!"]) is None
