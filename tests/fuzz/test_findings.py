"""What the fuzzer found once, each as the frame that showed it."""

from __future__ import annotations

import pytest

from plait.wire.close import CloseCode
from plait.wire.codec import BadField, Undecodable, decode_client, decode_server
from plait.wire.diagnose import read_refused

DEEP = "[" * 2000 + "]" * 2000


def test_a_deep_message_whose_keys_are_escaped_is_still_told_on_its_stream() -> None:
    text = '{"t\\u0079pe":"end","i\\u0064":3,"x":' + DEEP + "}"
    reading = read_refused(text, RecursionError())  # at which depth it comes is Python's affair
    assert (reading.type, reading.id, reading.fault.path) == ("end", 3, "x")


@pytest.mark.parametrize("decode", [decode_client, decode_server])
def test_bytes_that_are_no_utf8_close_1007_wherever_they_stand(decode: object) -> None:
    frame = b'{"type":"open","id":1,"method":"chat","params":{"x":"\xed\xa0\x80"}}'
    with pytest.raises(Undecodable) as caught:
        decode(frame)  # type: ignore[operator]
    assert caught.value.code is CloseCode.INVALID_UTF8


def test_a_path_ends_at_a_name_that_is_not_repeated() -> None:
    with pytest.raises(BadField) as caught:
        decode_client('{"type":"open","id":1,"method":"chat","params":{"tools":[{"a b":[NaN]}]}}')
    assert caught.value.error.param == "tools[0]"


def test_a_number_that_is_none_below_a_name_nobody_repeats_names_no_field() -> None:
    with pytest.raises(BadField) as caught:
        decode_client('{"type":"cancel","id":1,"a b":[NaN]}')
    assert (caught.value.error.code, caught.value.error.param) == ("invalid_message", None)
