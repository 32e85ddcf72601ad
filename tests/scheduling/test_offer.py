"""What a client may ask a speech model for, and what becomes of what it leaves out."""

from __future__ import annotations

import msgspec
import pytest

from plait.errors import InvalidRequest, VoiceNotFound
from plait.metrics import Metrics
from plait.scheduling.offer import Offer
from plait.scheduling.routing import Models
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.wire.messages import ChatMessage, ChatParams, SynthesizeParams, TranscribeParams

VOICES = ("af_heart", "bf_emma", "jf_alpha")


def offer(voices: tuple[str, ...] = VOICES) -> Offer:
    scheduler = Scheduler("m", Metrics(), SchedulerPolicy(), method="synthesize")
    return Offer(scheduler, voices, ("en-us", "en-gb"))


def completed(**params: str) -> tuple[str | None, str | None]:
    answer = offer().complete(msgspec.convert({"text": "x"} | params, SynthesizeParams))
    assert isinstance(answer, SynthesizeParams)
    return answer.voice, answer.language


def test_what_is_left_out_is_the_first_voice_and_its_language() -> None:
    assert completed() == ("af_heart", "en-us")


def test_a_voice_brings_its_language_a_blend_the_first_ones() -> None:
    assert completed(voice="bf_emma") == ("bf_emma", "en-gb")
    blend = "bf_emma:0.3,af_heart:2"
    assert completed(voice=blend) == (blend, "en-gb")


def test_a_language_that_is_given_wins_by_its_name_on_the_wire() -> None:
    assert completed(voice="af_heart", language="en-gb") == ("af_heart", "en-gb")
    assert completed(voice="jf_alpha", language="EN_us") == ("jf_alpha", "en-us")


@pytest.mark.parametrize(
    "voice",
    ["nope", "", "../../x", "AF_HEART", "x" * 256, "af_nova", "af_heart,af_nova", "af_heart:0"],
)
def test_a_voice_that_is_not_here_is_refused_with_those_that_are(voice: str) -> None:
    with pytest.raises(VoiceNotFound) as caught:
        completed(voice=voice)
    assert caught.value.data == {"voices": list(VOICES)}
    assert caught.value.param == "voice"


def test_a_model_without_a_voice_refuses_by_voice() -> None:
    with pytest.raises(VoiceNotFound):
        offer(()).complete(SynthesizeParams(text="x"))


@pytest.mark.parametrize("params", [{"language": "ja"}, {"voice": "jf_alpha"}, {"language": "xx"}])
def test_a_language_without_pronunciation_is_refused_by_name(params: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        completed(**params)
    assert caught.value.param == "language"


def test_params_of_other_methods_pass_as_they_are() -> None:
    params = ChatParams([ChatMessage("user", "Hi")])
    assert Offer(offer().scheduler).complete(params) is params


def heard_as(language: str | None, *known: str) -> str | None:
    """The language of the params that a model which knows `known` is given."""
    scheduler = Scheduler("m", Metrics(), SchedulerPolicy(), method="transcribe")
    params = TranscribeParams(16_000, language=language, words=True)
    answer = Offer(scheduler, languages=known).complete(params)
    assert isinstance(answer, TranscribeParams)
    assert answer == msgspec.structs.replace(params, language=answer.language)
    return answer.language


@pytest.mark.parametrize("language", ["en", "EN", "en-US", "en_gb", " en "])
def test_a_spoken_language_is_known_in_any_case_and_region(language: str) -> None:
    assert heard_as(language, "de", "en") == "en"


def test_a_language_with_a_name_of_its_own_is_not_cut() -> None:
    assert heard_as("zh-TW", "zh", "zh-tw") == "zh-tw"


def test_a_spoken_language_that_is_left_out_stays_the_models_to_find() -> None:
    assert heard_as(None, "en", "de") is None


@pytest.mark.parametrize("language", ["tlh", "", "-", "english", "e", "x" * 16])
def test_a_language_the_model_does_not_know_is_refused_with_some_it_knows(language: str) -> None:
    known = [f"{a}{b}" for a in "xyz" for b in "abcdefgh"]
    with pytest.raises(InvalidRequest) as caught:
        heard_as(language, *known)
    assert caught.value.param == "language"
    assert "xa, xb, " in caught.value.message
    assert "and 12 more" in caught.value.message
    assert len(caught.value.message) < 200


def test_a_methods_languages_are_those_of_all_its_models() -> None:
    scheduler = Scheduler("m", Metrics(), SchedulerPolicy(), method="transcribe")
    tiny, base = (Offer(scheduler, languages=codes) for codes in (("en",), ("de", "en")))
    described = Models({"transcribe": {"tiny.en": tiny, "base": base}}).describe()
    assert described["transcribe"].languages == ["en", "de"]
    assert described["transcribe"].voices is None


def test_a_methods_voices_are_those_of_all_its_models_the_default_models_first() -> None:
    models = Models({"synthesize": {"a": offer(("af_heart",)), "b": offer(VOICES)}})
    described = models.describe()["synthesize"]
    assert described.models == ["a", "b"]
    assert described.voices == list(VOICES)
