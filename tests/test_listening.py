"""Binding early and listening late, with errors that say what to do."""

from __future__ import annotations

import socket

import pytest

from plait.listening import PortUnavailable, bind, listen, playground_url


def test_a_bound_socket_refuses_clients_until_it_listens() -> None:
    with bind("127.0.0.1", 0) as server:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(server.getsockname())
        listen(server, "127.0.0.1", 0)

        socket.create_connection(server.getsockname()).close()


def test_a_port_taken_between_binding_and_listening_is_said() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind("127.0.0.1", port) as second:
            listen(first, "127.0.0.1", port)

            with pytest.raises(PortUnavailable, match="taken"):
                listen(second, "127.0.0.1", port)


@pytest.mark.parametrize("host", ["a..b", "192.0.2.1"])
def test_an_address_of_another_machine_cannot_be_bound(host: str) -> None:
    with pytest.raises(PortUnavailable, match="--host"):
        bind(host, 0)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8760/"),
        ("0.0.0.0", "http://127.0.0.1:8760/"),
        ("::", "http://[::1]:8760/"),
        ("::1", "http://[::1]:8760/"),
        ("[::1]", "http://[::1]:8760/"),
        ("plait.example", "http://plait.example:8760/"),
    ],
)
def test_the_url_is_one_a_browser_here_can_open(host: str, url: str) -> None:
    assert playground_url(host, 8760) == url
