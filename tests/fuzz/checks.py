"""What must hold of plait.wire for every input, as assertions; a failed one is a finding.

A connection is followed by a second, naive set of books. What only the standard library's reader
of JSON can tell (whose message is it?) is compared with ours. Does NOT know where inputs come from.
"""

from __future__ import annotations

import json
import re
from typing import Any

from plait.errors import BY_CODE, InvalidMessage, InvalidRequest, PlaitError, UnsupportedMethod
from plait.wire.close import MAX_REASON_BYTES
from plait.wire.codec import (
    CLIENT_TYPES,
    BadField,
    Undecodable,
    decode_binary,
    decode_client,
    decode_params,
    decode_server,
    encode_binary,
    encode_client,
    encode_params,
    encode_server,
)
from plait.wire.diagnose import read_refused
from plait.wire.frames import VERSION
from plait.wire.messages import MAX_ID, ClientMessage, ErrorBody, Rejected

MAX_ERROR_BYTES = 1000  # of a message that carries an error: no peer gets its own text back
CLOSE_CODES = (4400, 4429, 1007, 1009)
# Places in the message, and nothing else the peer wrote: names are short and plain.
PARAM = re.compile(r"[A-Za-z0-9_]{1,64}(\.[A-Za-z0-9_]{1,64}|\[\d{1,7}\])*")


def check_client(text: str | bytes) -> None:
    """One frame without a connection: what leaves, and that it is whose the sender meant."""
    owner = _owner(text)
    try:
        message = decode_client(text)
    except Undecodable as closed:
        check_close(closed.code, closed.reason)
        assert owner is None, f"the stream of {owner} could have been told"
        return
    except BadField as bad:
        check_error(bad.error)
        _check_told(bad, owner)
        return
    check_round_trip(message)
    came = (type(message).__struct_config__.tag, getattr(message, "id", None))
    if owner is not None:
        assert owner == came
        _check_slow_readers(text, came)


def _check_told(bad: BadField, owner: tuple[str, int] | None) -> None:
    assert bad.type in CLIENT_TYPES - {"ping"}
    assert owner in (None, (bad.type, bad.stream_id))


def check_close(code: int, reason: str) -> None:
    assert code in CLOSE_CODES
    assert 0 < len(reason.encode()) <= MAX_REASON_BYTES


def check_round_trip(message: ClientMessage) -> None:
    written = encode_client(message)
    assert encode_client(decode_client(written)) == written
    json.loads(written)


def _owner(text: str | bytes) -> tuple[str, int] | None:
    """(type, id) of what any reader of JSON takes for a message to a stream; None: for none."""
    try:
        whole = text if isinstance(text, str) else text.decode()  # json.loads lets surrogates pass
        value = json.loads(whole, object_pairs_hook=_unrepeated)
    except (ValueError, RecursionError, _Ambiguous):
        return None
    if not isinstance(value, dict):
        return None
    kind, id = value.get("type"), value.get("id")
    if kind not in tuple(CLIENT_TYPES - {"ping"}) or type(id) is not int or not 1 <= id <= MAX_ID:
        return None
    return kind, id


class _Ambiguous(Exception):
    """A text that repeats a key: whose it is can be read in two ways."""


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise _Ambiguous
    return read


def _check_slow_readers(text: str | bytes, came: tuple[Any, Any]) -> None:
    """The readers of nested and of broken texts see in a good one what the fast one does."""
    whole = text if isinstance(text, str) else text.decode()
    for pretended in (RecursionError(), ValueError()):
        reading = read_refused(whole, pretended)
        assert (reading.type, reading.id) == came, (reading, came)


def check_params(method: str, raw: bytes) -> None:
    try:
        params = decode_params(method, raw)
    except (InvalidRequest, InvalidMessage, UnsupportedMethod) as error:
        check_error(error)
        return
    assert decode_params(method, encode_params(params)) == params


def check_server(text: str | bytes) -> None:
    try:
        message = decode_server(text)
    except Undecodable as closed:
        check_close(closed.code, closed.reason)
        return
    if message is not None:
        written = encode_server(message)
        again = decode_server(written)
        assert again is not None
        assert encode_server(again) == written


def check_binary(frame: bytes) -> None:
    try:
        read = decode_binary(frame)
    except Undecodable:
        assert len(frame) < 16
        return
    if read.version == VERSION:
        fields = (read.kind, read.flags, read.id, read.seq, read.aux)
        assert encode_binary(*fields, read.payload) == frame


def check_error(error: PlaitError) -> None:
    """One of the closed list, that can be sent, and tells nobody what the peer wrote."""
    assert BY_CODE[error.code] is type(error)
    assert len(encode_server(Rejected(MAX_ID, ErrorBody.of(error)))) <= MAX_ERROR_BYTES
    assert error.param is None or PARAM.fullmatch(error.param), error.param
    error.message.encode()
