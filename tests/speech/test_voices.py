"""Voice names and blends: what is read, and that nothing else gets through."""

from __future__ import annotations

import pytest

from plait.errors import VoiceNotFound
from plait.speech.voices import parse_voice, voice_language


def test_a_voice_alone_has_all_the_weight() -> None:
    assert parse_voice("af_heart") == (("af_heart", 1.0),)


def test_the_weights_of_a_blend_sum_to_one() -> None:
    parts = parse_voice("af_heart:3, bf_emma:1")

    assert parts == (("af_heart", 0.75), ("bf_emma", 0.25))


def test_parts_without_a_weight_share_equally() -> None:
    assert parse_voice("af_heart,bf_emma") == (("af_heart", 0.5), ("bf_emma", 0.5))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "nope", "AF_HEART", "../../x", "af_heart/../x", "af_heart\0", "af_heart\n.bin",
        "xf_heart", "af_", "af_heart:", "af_heart:0", "af_heart:-1", "af_heart:nan", "af_heart:inf",
        "af_heart:1e9", "af_heart:.", "af_heart:1:2", ",af_heart", "af_heart,", "af_heart,af_heart",
        "af_heart:0.5,af_heart:0.5", ",".join(f"af_{n}" for n in "abcdefghi"), "a" * 10_000,
        "af_h\u00e9art", "\ud800", "\u0430f_heart",
    ],
)  # fmt: skip
def test_anything_else_is_no_voice_and_says_so_in_ascii(text: str) -> None:
    with pytest.raises(VoiceNotFound) as caught:
        parse_voice(text)

    assert caught.value.param == "voice"
    assert caught.value.message.isascii()
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("af_heart", "en-us"), ("bm_george", "en-gb"), ("ef_dora", "es"), ("ff_siwis", "fr"),
        ("hf_alpha", "hi"), ("if_sara", "it"), ("jf_alpha", "ja"), ("pf_dora", "pt-br"),
        ("zf_xiaobei", "zh"),
    ],
)  # fmt: skip
def test_the_first_letter_tells_the_language(name: str, language: str) -> None:
    assert voice_language(name) == language


def test_a_letter_without_a_language_is_no_voice() -> None:
    with pytest.raises(VoiceNotFound):
        voice_language("xf_heart")
