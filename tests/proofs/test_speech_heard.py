"""What is spoken can be understood, and sounds as it did when a recogniser wrote it down.

The stored transcripts are Whisper's (`remake_speech.py` says how they came about); what runs here
is the check that the same sentences still last as long and still look the same.
"""

from __future__ import annotations

import io
import itertools
import warnings
import wave
from collections.abc import Callable

import numpy as np
import pytest

from plait.client import connect
from plait.speech.front import FrontEnd
from plait.speech.voices import parse_voice, voice_language
from tests.live.server import LiveServer
from tests.proofs.fingerprint import distance_db, fingerprint
from tests.proofs.heard import SAME_DB, Sentence, Tail, load, word_error_rate, words
from tests.proofs.sizes import FULL, TEST_SECONDS
from tests.proofs.speech_rig import LAST, Spoken, phonemes_of, speak

pytestmark = pytest.mark.timeout(TEST_SECONDS)

RECORD = load()
# In every test run the shortest of each voice and speed, in one segment and in several: what they
# are told to say is checked for all.
SPOKEN = (
    RECORD.sentences
    if FULL
    else list(
        {
            (one.voice, one.speed, len(one.phonemes) > 1): one
            for one in sorted(RECORD.sentences, key=lambda one: -one.seconds)
        }.values()
    )
)
NEARBY = 240  # samples on both sides of a border, 10 ms

each_sentence = pytest.mark.parametrize("sentence", RECORD.sentences, ids=lambda one: one.name)


@each_sentence
def test_every_word_was_understood(sentence: Sentence) -> None:
    wanted = sentence.reference or sentence.text

    assert word_error_rate(wanted, sentence.transcript) == 0


@pytest.mark.parametrize("tail", RECORD.tails, ids=lambda tail: tail.language)
def test_the_last_sentence_of_a_long_paragraph_was_understood(tail: Tail) -> None:
    wanted = words(LAST[tail.language])

    assert words(tail.transcript)[-len(wanted) :] == wanted


def test_no_two_sentences_look_alike() -> None:
    pairs = itertools.combinations(RECORD.sentences, 2)

    assert min(distance_db(one.sound, other.sound) for one, other in pairs) > 2 * SAME_DB


@pytest.fixture(scope="module")
def front() -> FrontEnd:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries' own, while they are imported
        return FrontEnd.load()


@each_sentence
def test_a_sentence_is_pronounced_as_it_was_when_it_was_understood(
    front: FrontEnd, sentence: Sentence
) -> None:
    language = voice_language(parse_voice(sentence.voice)[0][0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert phonemes_of(front, sentence.text, language) == sentence.phonemes


@pytest.mark.model
@pytest.mark.parametrize("sentence", SPOKEN, ids=lambda one: one.name)
async def test_a_sentence_sounds_as_it_did_when_it_was_understood(
    speech_server: LiveServer, sentence: Sentence, record_property: Callable[[str, object], None]
) -> None:
    """At most 1.3 dB by PyTorch instead of onnxruntime, or by other predicted statistics; 0.3 with
    another seed of the source noise. No two of the sentences are closer than 8 dB.
    """
    async with connect(speech_server.ws_url) as client:
        spoken = await speak(client, sentence.text, voice=sentence.voice, speed=sentence.speed)

    apart = distance_db(sentence.sound, fingerprint(spoken.samples))
    record_property("seconds", round(spoken.seconds, 2))
    record_property("distance, dB", round(apart, 2))
    assert spoken.seconds == pytest.approx(sentence.seconds, rel=0.05)
    assert apart < SAME_DB
    assert_seamless(spoken)


def assert_seamless(spoken: Spoken) -> None:
    """Where one chunk ends and the next begins, samples step no further than around there."""
    samples = spoken.samples.astype(np.int64)
    for border in spoken.borders:
        around = np.abs(np.diff(samples[border - NEARBY : border + NEARBY]))
        step = around[NEARBY - 1]
        assert step <= max(np.delete(around, NEARBY - 1).max(), 64), border


@pytest.mark.model
async def test_what_is_saved_is_one_wav_of_all_that_was_sent(speech_server: LiveServer) -> None:
    saved = io.BytesIO()
    async with connect(speech_server.ws_url) as client:
        spoken = await speak(client, "One file, one header. No more.", speed=2)
        await client.synthesize("One file, one header. No more.", speed=2).to_wav(saved)

    data = saved.getvalue()
    with wave.open(io.BytesIO(data)) as file:
        assert file.getparams()[:4] == (1, 2, 24_000, len(spoken.samples))
        assert file.readframes(file.getnframes()) == spoken.samples.tobytes()
    assert data.count(b"RIFF") == 1
