"""Odd texts through the real front end: every one gives audio or a typed error, and its marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.engines.base import Failed, Finished, LoadSpec
from plait.engines.kokoro.engine import KokoroEngine
from plait.errors import EmptyText
from plait.speech.front import FrontEnd
from plait.speech.languages import missing
from tests.engines.kokoro.rig import Flags, NoThread, SpeechRig, ToySynthesizer, write_voices

pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(120),
    pytest.mark.skipif(missing("en-us") is not None, reason="English is not installed"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),  # misaki's
]


@pytest.fixture(scope="module")
def front_end() -> FrontEnd:
    return FrontEnd.load(["en-us"])


@pytest.fixture
def rig(tmp_path: Path, front_end: FrontEnd) -> SpeechRig:
    """The real front end before the toy's sines."""
    flags = Flags()
    spec = LoadSpec("kokoro-onnx", "toy", slots=4, context_tokens=0, max_tokens=0)
    voices = write_voices(tmp_path)
    synthesizer = ToySynthesizer((0, 0, 48_000))
    engine = KokoroEngine(spec, flags, synthesizer, front_end, voices, thread=NoThread())
    return SpeechRig(engine, flags)


@pytest.mark.parametrize("text", ["", " ", "\n", "!!!", "\U0001f600", "\u200b", "—", "\x00\x07"])
def test_nothing_to_speak_is_a_typed_error_as_a_text_and_an_empty_end_as_input(
    rig: SpeechRig, text: str
) -> None:
    with pytest.raises(EmptyText):
        rig.prepare(text)
    job = rig.start()
    rig.feed(job, text)
    rig.engine.finish_input(job)
    rig.finish()

    assert rig.ends[job] == Finished(job, "stop", {"characters": len(text), "audio_ms": 0})
    assert rig.consumed.get(job, 0) == len(text.encode())


@pytest.mark.parametrize("text", ["\u041f\u0440\u0438\u0432\u0435\u0442!", "\u4f60\u597d\u3002"])
def test_a_text_of_another_script_is_refused_with_what_would_help(
    rig: SpeechRig, text: str
) -> None:
    with pytest.raises(EmptyText, match="take a voice of the text's own language"):
        rig.prepare(text)


@pytest.mark.parametrize(
    "text",
    [
        "button kitten written",
        "həˈloʊ wɜld",  # noqa: RUF001 - IPA is the point
        "مرحبا بالعالم, hello",
        "tab\tand\x00null\x1b[31m",
        "It costs $5.20 (10%) on 3/4/2024, see https://example.com/a?b=1 \U0001f600!\r\n\r\nBye.",
        "a" * 600,
        "word " * 240,
    ],
)
def test_odd_texts_are_spoken_and_their_marks_are_the_text(rig: SpeechRig, text: str) -> None:
    job = rig.start(text)
    rig.finish()

    assert isinstance(rig.ends[job], Finished)
    assert rig.pcm(job)
    assert rig.spoken_text(job) == text


def test_credit_and_marks_account_for_every_byte_fed_a_few_letters_at_a_time(
    rig: SpeechRig,
) -> None:
    text = "Well, “naïve” plans cost €30, or so. \U0001f600 Then nothing… at all! 12:30? Yes, no"
    job = rig.start()
    for begin in range(0, len(text), 3):
        rig.feed(job, text[begin : begin + 3])
        rig.finish()
    rig.engine.finish_input(job)
    rig.finish()

    assert rig.spoken_text(job) == text
    assert rig.consumed[job] == len(text.encode())
    assert len(rig.marks(job)) > 2


def test_much_text_without_a_word_fails_in_many_steps(rig: SpeechRig) -> None:
    job = rig.start("\U0001f600 — " * 1_000)
    rig.step()

    assert job not in rig.released
    rig.finish()
    end = rig.ends[job]
    assert isinstance(end, Failed)
    assert end.fault.code == "empty_text"
