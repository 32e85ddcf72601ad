"""Readers of the same text agree: the fast one, the patient ones, and the standard library's.

Messages are varied by values of every kind, at every place, and by how they are written; what must
hold is what the fuzzer holds them to (`tests.fuzz.checks`). Shrunk to the smallest one that fails.
"""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from plait.wire.codec import BadField, Undecodable, decode_binary, decode_client, encode_binary
from plait.wire.diagnose import read_refused
from plait.wire.messages import PARAMS
from tests.fuzz.books import play
from tests.fuzz.checks import check_client, check_params, check_server
from tests.fuzz.script import BINARY, FORGET, TEXT, VECTORS, WAIT, joined

# The same examples in every run: the fuzzer is there to look further.
some = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

CLIENT: list[dict[str, Any]] = [vector["message"] for vector in VECTORS["client"]]
SERVER: list[dict[str, Any]] = [vector["message"] for vector in VECTORS["server"]]

numbers = st.one_of(
    st.integers(-2, 300),
    st.sampled_from([2**31, 2**32 - 1, 2**32, 2**53, 2**63, 2**64, 0.5, 1e308, -0.0]),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=6) | st.just("\ud800"),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=4), children, max_size=3)
    ),
    max_leaves=4,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything in a message."""
    if not isinstance(node, (dict, list)):
        return []
    keys = list(node) if isinstance(node, dict) else range(len(node))
    return [place for key in keys for place in [(node, key), *places(node[key])]]


@st.composite
def varied(draw: st.DrawFn, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """One of the examples with up to three of its values replaced or left out."""
    message: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(messages)))
    for _ in range(draw(st.integers(0, 3))):
        node, key = draw(st.sampled_from(places(message)))
        if draw(st.booleans()) and isinstance(node, dict) and len(message) > 1:
            del node[key]
        else:
            node[key] = draw(values)
    return message


def written(draw: st.DrawFn, message: dict[str, Any]) -> str:
    """As some client may write it: escaped or not, with room, and with fields nobody knows."""
    message = message | draw(st.sampled_from([{}, {"novelty": 1}, {"x": [[{}]]}]))
    text = json.dumps(message, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace('"id"', '"i\\u0064"').replace('"type"', ' "\\u0074ype" ')
    if draw(st.booleans()):
        deep = "[" * 100 + "]" * 100
        text = f'{{"deep": {deep}, {text[1:]}'
    return text


@st.composite
def client_texts(draw: st.DrawFn) -> str:
    return written(draw, draw(varied(CLIENT)))


@some(max_examples=150)
@given(client_texts())
def test_a_message_is_whose_its_sender_meant_for_every_reader(text: str) -> None:
    check_client(text)


@some(max_examples=80)
@given(client_texts())
def test_refused_texts_are_read_alike_by_the_patient_reader_and_the_scanner(text: str) -> None:
    """A fault is told on the same stream whichever of them had to find it."""
    try:
        decode_client(text)
    except (BadField, Undecodable):
        patient = read_refused(text, ValueError())
        scanned = read_refused(text, RecursionError())
        assert (patient.type, patient.id) == (scanned.type, scanned.id)


@some(max_examples=80)
@given(st.sampled_from(sorted(PARAMS)), st.data())
def test_params_are_refused_by_name_or_survive_a_round_trip(
    method: str, data: st.DataObject
) -> None:
    opens = [m["params"] for m in CLIENT if m["type"] == "open" and m["method"] == method]
    params = data.draw(varied([params for params in opens if params]))
    check_params(method, json.dumps(params).encode())


@some(max_examples=80)
@given(varied(SERVER))
def test_a_servers_message_is_read_ignored_or_undecodable(message: dict[str, Any]) -> None:
    check_server(json.dumps(message))


@some(max_examples=50)
@given(
    st.tuples(*[st.integers(0, 255), st.integers(0, 65535), *[st.integers(0, 2**32 - 1)] * 3]),
    st.binary(max_size=40),
)
def test_every_binary_header_survives_a_round_trip(
    fields: tuple[int, int, int, int, int], payload: bytes
) -> None:
    frame = decode_binary(encode_binary(*fields, payload))
    assert (frame.kind, frame.flags, frame.id, frame.seq, frame.aux) == fields
    assert bytes(frame.payload) == payload


steps = st.one_of(
    client_texts().map(lambda text: TEXT + text.encode("utf-8", "surrogatepass")),
    st.builds(lambda id: BINARY + encode_binary(2, 0, id, 0, 0, b"\0\0"), st.integers(0, 5)),
    st.binary(max_size=2).map(lambda data: FORGET + data),
    st.binary(max_size=2).map(lambda data: WAIT + data),
)


@some(max_examples=50)
@given(st.lists(steps, max_size=12))
def test_a_connection_agrees_with_books_kept_in_the_plainest_way(frames: list[bytes]) -> None:
    play(joined(frames))
