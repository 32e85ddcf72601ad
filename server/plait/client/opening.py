"""`connect`: from a URL to a `Client`, and the block that owns its tasks.

Leaving the block closes the socket, which cancels at the server whatever still runs; no task
outlives it. This module does NOT know streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect as connect_socket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from plait.client.connection import Client
from plait.client.errors import ConnectionLost, lost_by
from plait.errors import InvalidRequest, PlaitError, Unauthorized
from plait.wire.close import CloseCode
from plait.wire.codec import decode_server
from plait.wire.frames import MAX_SERVER_FRAME_BYTES, Undecodable
from plait.wire.messages import Welcome

SUBPROTOCOL = "plait.v1"
MAX_FRAME_BYTES = 16 * MAX_SERVER_FRAME_BYTES
PING_SECONDS = 10
CLOSE_SECONDS = 5


@asynccontextmanager
async def connect(
    url: str, token: str | None = None, *, open_timeout_seconds: float = 10
) -> AsyncIterator[Client]:
    """Connect to `ws://host:port/v1/ws`; the block's end closes the connection.

    Raises Unauthorized for a wrong token, InvalidRequest for a bad URL, and ConnectionLost when
    there is no server, it refuses, or it does not speak plait.v1.
    """
    socket = await _open_socket(url, token, open_timeout_seconds)
    failure: Exception | None = None
    try:
        welcome = await _receive_welcome(socket, open_timeout_seconds)
        async with asyncio.TaskGroup() as tasks:
            client = Client(socket, welcome, tasks)
            tasks.create_task(client.read_frames())
            writer = tasks.create_task(client.write_frames())
            try:
                yield client
            except Exception as error:  # noqa: BLE001 - raised below, not wrapped into a group
                failure = error
            finally:
                writer.cancel()
                await socket.close()  # the reader still reads, so the handshake can complete
    finally:
        await socket.close()
    if failure is not None:
        raise failure


async def _open_socket(url: str, token: str | None, timeout_seconds: float) -> ClientConnection:
    try:
        return await connect_socket(
            url,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            additional_headers={} if token is None else {"Authorization": f"Bearer {token}"},
            compression=None,
            proxy=None,  # the server is ours, mostly on this machine
            open_timeout=timeout_seconds,
            close_timeout=CLOSE_SECONDS,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            max_size=MAX_FRAME_BYTES,
        )
    except InvalidStatus as error:
        raise _refused(error.response.status_code) from error
    except InvalidURI as error:
        raise InvalidRequest(f"url: {error}. Use ws://host:port/v1/ws.", param="url") from error
    except (OSError, InvalidHandshake) as error:
        raise ConnectionLost(f"no connection to the server: {error}") from error


async def _receive_welcome(socket: ClientConnection, timeout_seconds: float) -> Welcome:
    try:
        async with asyncio.timeout(timeout_seconds):
            message = decode_server(await socket.recv())
    except TimeoutError as error:
        raise ConnectionLost("the server sent no welcome") from error
    except Undecodable as error:
        raise ConnectionLost("the server does not speak plait.v1") from error
    except ConnectionClosed as closed:
        if closed.rcvd is not None and closed.rcvd.code == CloseCode.UNAUTHORIZED:
            raise Unauthorized("the token is missing or wrong") from closed
        raise lost_by(closed) from closed
    if not isinstance(message, Welcome):
        raise ConnectionLost("the server did not begin with welcome")
    return message


def _refused(status: int) -> PlaitError:
    if status == 401:
        return Unauthorized("the token is missing or wrong")
    return ConnectionLost(f"the server refused the connection with HTTP {status}")
