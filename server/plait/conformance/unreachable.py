"""Why a server cannot be asked, in words, with the next step that fits the cause.

Pure. Does NOT know how one connects.
"""

from __future__ import annotations

from http import HTTPStatus

# By status of the handshake, as PROTOCOL.md §1 gives them.
_NEXT_STEPS = {
    HTTPStatus.UNAUTHORIZED: "it wants a token, or another one. Give --token, or set PLAIT_TOKEN.",
    HTTPStatus.FORBIDDEN: "it does not let this page, or this host name, in. Give an --origin of"
    " its `allowed_origins`, and a name of its `allowed_hosts`.",
    HTTPStatus.SERVICE_UNAVAILABLE: "it is full, stopping or not ready. Try again later.",
    HTTPStatus.TOO_MANY_REQUESTS: "it has had too many attempts. Try again later.",
}


def not_connected(url: str, error: OSError) -> str:
    """For an address where nothing answers."""
    said = str(error) or "no answer in time"
    return (
        f"{url} cannot be connected to: {said}. Check the address, and that a server runs there:"
        " `plait serve` starts one."
    )


def refused(url: str, status: int, error: Exception) -> str:
    """For a server that answered the handshake, but not with a WebSocket; `status` 0: no HTTP."""
    if status in _NEXT_STEPS:
        return f"{url} answered HTTP {status}: {_NEXT_STEPS[HTTPStatus(status)]}"
    no_plait = "so it is no plait.v1 server. Check host, port and path"
    if status == HTTPStatus.SWITCHING_PROTOCOLS:
        return f"{url} speaks WebSocket, but not as asked for ({error}), {no_plait}."
    if status:
        return f"{url} answered HTTP {status}, {no_plait}."
    return f"{url} answered something that is not HTTP, {no_plait}, and http or https."
