"""The socket the server listens on: bound early, so that a taken port is said before a download.

Binding and listening are two steps: until `listen` a client is refused instead of left waiting
while a model is fetched. Does NOT know: HTTP, configuration.
"""

from __future__ import annotations

import errno
import socket

from plait.installation import program_name


class PortUnavailable(Exception):
    """The address cannot be listened on. `next_step` is one sentence; str() holds both."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message, next_step)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}"


def playground_url(host: str, port: int) -> str:
    """Where a browser on this machine finds the playground."""
    host = host.strip("[]")
    wildcard = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
    shown = wildcard.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/"


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet. Raises PortUnavailable."""
    try:
        host = host.strip("[]")  # of an IPv6 address, as a URL has them
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # gaierror, and names that are none
        raise _unavailable(host, port, error) from error
    try:
        # A restart must not wait for the old connections' TIME_WAIT.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise _unavailable(host, port, error) from error
    return listening


def listen(listening: socket.socket, host: str, port: int) -> None:
    """Accept connections from now on. Raises PortUnavailable."""
    try:
        listening.listen(socket.SOMAXCONN)
    except OSError as error:
        raise _unavailable(host, port, error) from error


def _unavailable(host: str, port: int, error: OSError | UnicodeError) -> PortUnavailable:
    where = f"{host}:{port}"
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return PortUnavailable(
            f"port {port} on {host} is taken, perhaps by another plait.",
            f"Stop what is on port {port}, or take a free one: {program_name()} serve --port 0",
        )
    if number == errno.EACCES:
        return PortUnavailable(
            f"this user may not listen on {where}.",
            f"Choose a port above 1023: {program_name()} serve --port 8760",
        )
    reason = getattr(error, "strerror", None) or error
    return PortUnavailable(
        f"cannot listen on {where} ({reason}).",
        f"Use an address of this machine: {program_name()} serve --host 127.0.0.1",
    )
