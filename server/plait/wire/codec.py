"""Text frames to messages and back, both directions; decoding is validating.

The fast path is one typed msgspec decode. A text it refuses goes to `diagnose`, which finds out
whose it is: a fault with a readable type and id is `BadField` (an error on that stream), everything
else `Undecodable` (the socket closes). Binary frames live in `frames` and are offered here too.
This module does NOT know which ids exist nor what may follow what (see `connection`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from plait.errors import InvalidMessage, InvalidRequest, UnsupportedMethod
from plait.wire.close import CloseCode
from plait.wire.diagnose import (
    Fault,
    Unreadable,
    fault_of,
    read_refused,
)
from plait.wire.frames import (
    BinaryFlags as BinaryFlags,
    BinaryFrame as BinaryFrame,
    BinaryKind as BinaryKind,
    Undecodable as Undecodable,
    decode_binary as decode_binary,
    encode_binary as encode_binary,
)
from plait.wire.free_form import check_free_form, measure_free_form
from plait.wire.messages import (
    MAX_ID,
    PARAMS,
    ChatParams,
    ClientMessage,
    Params,
    ServerMessage,
)

MAX_INT = 2**31 - 1
CLIENT_TYPES = frozenset({"open", "ack", "input", "end", "cancel", "ping"})

_client = msgspec.json.Decoder(ClientMessage)
_server = msgspec.json.Decoder(ServerMessage)
_params: dict[str, msgspec.json.Decoder[Any]] = {
    method: msgspec.json.Decoder(kind) for method, kind in PARAMS.items()
}
_encoder = msgspec.json.Encoder()


class BadField(Exception):
    """A client message of a known type and id that cannot be used; `error` says why.

    `error.param` names the field; fields of `params` are named without that prefix. It is None,
    and the error `invalid_message`, when there is no field to name.
    """

    def __init__(self, error: InvalidMessage | InvalidRequest, stream_id: int, type: str) -> None:
        super().__init__(error.message)
        self.error = error
        self.stream_id = stream_id
        self.type = type


# --- the server's side -------------------------------------------------------------------------


def decode_client(text: str | bytes) -> ClientMessage:
    """One text frame from a client. `Open.params` stays raw (see `decode_params`).

    Raises Undecodable or BadField; nothing else, whatever `text` holds.
    """
    whole = _as_text(text)  # a decoder of bytes looks only at what it needs
    try:
        return _client.decode(whole)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _refusal(whole, error) from None


def decode_params(method: str, raw: bytes | memoryview | msgspec.Raw) -> Params:
    """The params of an `open`. Raises UnsupportedMethod, or InvalidRequest naming the field."""
    decoder = _params.get(method)
    if decoder is None:
        raise UnsupportedMethod(
            f"method {method[:64]!r} does not exist. Use one of: {', '.join(PARAMS)}.",
            param="method",
        )
    try:
        if method == "chat":
            measure_free_form(bytes(raw))
        params: Params = decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _invalid_request(_params_fault(bytes(raw), error), within="params") from None
    if isinstance(params, ChatParams):
        check_free_form(params)
        if params.max_tokens is not None and params.max_tokens > MAX_INT:
            # An upper bound: any number beyond what could ever run means the same.
            params = msgspec.structs.replace(params, max_tokens=MAX_INT)
    return params


def encode_server(message: ServerMessage) -> str:
    """A text frame."""
    return _encoder.encode(message).decode()


def encode_item(id: int, seq: int, data: bytes) -> str:
    """A text frame of type `item`; `data` is JSON already and is not encoded again."""
    return f'{{"type":"item","id":{id},"seq":{seq},"data":{data.decode()}}}'


# --- the client's side -------------------------------------------------------------------------


def encode_client(message: ClientMessage) -> str:
    """A text frame. Raises InvalidRequest for text no JSON can carry (half a surrogate pair)."""
    try:
        return _encoder.encode(message).decode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "the message holds half of a surrogate pair, which is not valid Unicode. Remove it."
        ) from error


def encode_params(params: Params | dict[str, Any]) -> msgspec.Raw:
    """For `Open.params`. Raises InvalidRequest like `encode_client`."""
    try:
        return msgspec.Raw(_encoder.encode(params))
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "params hold half of a surrogate pair, which is not valid Unicode. Remove it."
        ) from error


def decode_server(text: str | bytes) -> ServerMessage | None:
    """One text frame from a server; None for a type this version does not know (§8: ignore).

    Raises Undecodable when the frame is broken: whoever sent it does not speak plait.v1.
    """
    whole = _as_text(text)
    try:
        return _server.decode(whole)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        if isinstance(error, msgspec.ValidationError) and _names_unknown_type(fault_of(error)):
            return None
        raise Undecodable(CloseCode.UNREADABLE, f"unreadable server message: {error}") from error


def _names_unknown_type(fault: Fault) -> bool:
    return fault.path == "type" and fault.what.startswith("Invalid value")


# --- refusals ----------------------------------------------------------------------------------


def _as_text(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(CloseCode.INVALID_UTF8, "text frame is not valid UTF-8") from error


def _refusal(text: str, error: Exception) -> Undecodable | BadField:
    try:
        reading = read_refused(text, error)
    except Unreadable as unreadable:
        return Undecodable(CloseCode.UNREADABLE, f"unreadable message: {unreadable}")
    kind, id, fault = reading.type, reading.id, reading.fault
    if kind not in CLIENT_TYPES or kind is None:
        return Undecodable(CloseCode.UNREADABLE, "unknown or unreadable message type")
    if kind == "ping":
        # It names no stream that could carry the error, and only a broken client gets it wrong.
        return Undecodable(CloseCode.UNREADABLE, f"ping: {fault.path or 'message'}: {fault.what}")
    if id is None or not 1 <= id <= MAX_ID:
        return Undecodable(
            CloseCode.UNREADABLE, f"{kind}: id must be an integer from 1 to {MAX_ID}"
        )
    return BadField(_invalid_request(fault), id, kind)


def _invalid_request(fault: Fault, within: str = "") -> InvalidMessage | InvalidRequest:
    path = fault.path.removeprefix("params.") or within
    if not path:
        return InvalidMessage(f"the message cannot be read: {fault.what}. Correct it.")
    return InvalidRequest(f"{path}: {fault.what}. Correct it and send it again.", param=path)


def _params_fault(raw: bytes, error: Exception) -> Fault:
    try:
        return read_refused(_as_text(raw), error).fault
    except (Unreadable, Undecodable) as unreadable:
        return Fault("", str(unreadable))
