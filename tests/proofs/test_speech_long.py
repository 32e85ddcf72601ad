"""Long texts are spoken to their end, and heard from their beginning at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from plait.client import connect
from plait.speech.front import FrontEnd
from tests.live.server import LiveServer
from tests.proofs.fingerprint import distance_db
from tests.proofs.heard import SAME_DB
from tests.proofs.sizes import (
    PARAGRAPH_CHARACTERS,
    SPEECH_LANGUAGES,
    SPEECH_SPEED,
    TEST_SECONDS,
    UNBROKEN_CHARACTERS,
    WORD_CHARACTERS,
)
from tests.proofs.speech_rig import LAST, VOICES, Spoken, paragraph, speak, unbroken

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

Record = Callable[[str, object], None]
# Seconds a character lasts at speed 1; a Chinese one is a syllable.
TRIES = 4  # a machine that stalls says nothing of when audio comes
PLAUSIBLE = {"en": (0.045, 0.11), "ja": (0.09, 0.3), "zh": (0.15, 0.4)}


def seconds_per_character(spoken: Spoken, text: str) -> float:
    return spoken.seconds * SPEECH_SPEED / len(text)


def assert_words_in_order(spoken: Spoken) -> None:
    """Marks follow each other, words have a time, and nothing is said outside its mark."""
    times = [word for mark in spoken.marks for word in mark.words]
    assert all(word.end > word.start for word in times)
    assert all(one.end <= other.start + 1e-6 for one, other in pairwise(times))
    assert spoken.marks[-1].end <= spoken.seconds + 1e-6


@pytest.mark.parametrize("language", SPEECH_LANGUAGES)
async def test_a_long_paragraph_is_spoken_to_its_last_sentence_and_from_the_start_at_once(
    speech_server: LiveServer, language: str, record_property: Record
) -> None:
    if not any(one.startswith(language) for one in FrontEnd.languages()):
        pytest.skip(f"{language} is not installed here")
    text, how = paragraph(PARAGRAPH_CHARACTERS, language), {"voice": VOICES[language]}
    async with connect(speech_server.ws_url) as client:
        for _ in range(TRIES):
            spoken = await speak(client, text, speed=SPEECH_SPEED, **how)
            if early_and_spread(spoken):
                break
        alone = await speak(client, LAST[language], speed=SPEECH_SPEED, **how)

    last, per_character = spoken.marks[-1], seconds_per_character(spoken, text)
    apart = distance_db(spoken.sound_of(last), alone.sound_of(alone.marks[0]))
    record_property("characters", len(text))
    record_property("seconds of audio", round(spoken.seconds, 1))
    record_property("last sentence from itself alone, dB", round(apart, 2))
    record_property("first audio after s", round(spoken.arrivals[0], 2))
    record_property("of s in all", round(spoken.arrivals[-1], 2))
    assert spoken.text == text
    assert last.text == LAST[language]
    assert apart < SAME_DB
    assert PLAUSIBLE[language][0] < per_character < PLAUSIBLE[language][1]
    assert_words_in_order(spoken)
    assert early_and_spread(spoken), spoken.arrivals


def early_and_spread(spoken: Spoken) -> bool:
    """The first fifth of the time has audio, and so has every quarter of it."""
    total = spoken.arrivals[-1]
    quarters = {int(4 * at / total) for at in spoken.arrivals}
    return spoken.arrivals[0] < total / 5 and quarters >= {0, 1, 2, 3}


async def test_a_text_without_punctuation_is_spoken_whole(
    speech_server: LiveServer, record_property: Record
) -> None:
    text = unbroken(UNBROKEN_CHARACTERS)
    async with connect(speech_server.ws_url) as client:
        spoken = await speak(client, text, speed=SPEECH_SPEED)

    per_character = seconds_per_character(spoken, text)
    record_property("characters", len(text))
    record_property("seconds of audio", round(spoken.seconds, 1))
    assert spoken.text == text
    assert [word.text for mark in spoken.marks for word in mark.words] == text.split()
    assert PLAUSIBLE["en"][0] < per_character < PLAUSIBLE["en"][1]
    assert_words_in_order(spoken)


@pytest.mark.parametrize("syllable", ["lighthouse", "x"])
async def test_a_word_of_hundreds_of_letters_is_spoken_and_ends(
    speech_server: LiveServer, syllable: str, record_property: Record
) -> None:
    text = (syllable * WORD_CHARACTERS)[:WORD_CHARACTERS]
    async with connect(speech_server.ws_url) as client:
        spoken = await speak(client, text, speed=SPEECH_SPEED)

    record_property("seconds of audio", round(spoken.seconds, 1))
    assert spoken.text == text
    assert 0.03 < seconds_per_character(spoken, text) < 1
    assert_words_in_order(spoken)
