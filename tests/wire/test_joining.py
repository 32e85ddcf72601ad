"""Joined texts say what the unjoined ones said, however they are encoded."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from plait.wire.joining import join_texts, read_text

ENTRY = st.fixed_dictionaries(
    {"token": st.text(), "logprob": st.floats(-20, 0), "top": st.just([])}
)
ITEM = st.fixed_dictionaries(
    {"content": st.text()}, optional={"logprobs": st.lists(ENTRY, max_size=3)}
)


def encoded(item: dict[str, Any], how: str) -> bytes:
    """As an adapter may write it: dense, or with spaces and every other character escaped."""
    return msgspec.json.encode(item) if how == "dense" else json.dumps(item).encode()


@given(st.lists(st.tuples(ITEM, st.sampled_from(["dense", "escaped"])), min_size=1, max_size=8))
def test_joined_texts_are_all_contents_and_all_logprobs_in_order(
    items: list[tuple[dict[str, Any], str]],
) -> None:
    texts = [text for item, how in items if (text := read_text(encoded(item, how)))]

    joined = msgspec.json.decode(join_texts(texts))

    assert len(texts) == len(items)
    assert joined["content"] == "".join(item["content"] for item, _ in items)
    logprobs = [entry for item, _ in items for entry in item.get("logprobs", [])]
    assert joined.get("logprobs", []) == logprobs
    assert ("logprobs" in joined) == any("logprobs" in item for item, _ in items)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_a_joined_text_can_be_joined_again(contents: list[str]) -> None:
    texts = [read_text(msgspec.json.encode({"content": text})) for text in contents]
    whole = join_texts([text for text in texts if text])
    again = read_text(whole)
    assert again is not None
    assert msgspec.json.decode(join_texts([again, again]))["content"] == "".join(contents) * 2


@pytest.mark.parametrize(
    "data",
    [
        b'{"content":"a","tool_calls":[]}',
        b'{"content":"a","logprobs":[],"tool_calls":[]}',
        b'{"tool_calls":[]}',
        b'{"content":null}',
        b'{"content":"a","logprobs":null}',
        b'{"index":0,"embedding":[0.5]}',
        b'{"segment":{}}',
        b'"xxx"',
    ],
)
def test_an_item_that_holds_anything_else_stays_by_itself(data: bytes) -> None:
    assert read_text(data) is None
