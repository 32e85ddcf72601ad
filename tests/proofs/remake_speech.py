"""Fill tests/data/speech/sentences.json anew, after a change that is meant to be heard.

    python -m tests.proofs.remake_speech MODEL_DIRECTORY [NAME ...]

speaks every sentence (or those named) through a real server, has Whisper write it down, and stores
the transcript beside what the audio looked like; with the name `tails`, the ends of long
paragraphs too. Read what it prints: a sentence that was not understood belongs mended, not stored.
Needs the faster-whisper package and a multilingual Whisper in its format (model.bin, config.json,
tokenizer.json); neither is part of Plait, nor of its tests.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import sys
import warnings
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.client import Client, connect
from plait.speech.front import FrontEnd
from plait.speech.voices import parse_voice, voice_language
from tests.live.server import live_server
from tests.proofs.fingerprint import SAMPLE_RATE, fingerprint, pack
from tests.proofs.heard import Record, Sentence, Tail, load, save, word_error_rate
from tests.proofs.speech_rig import LAST, VOICES, Spoken, paragraph, phonemes_of, speak

ENGINE = "kokoro-onnx"
WHISPER_RATE = 16_000
TAIL_SECONDS = 10
TAIL_CHARACTERS = {"en": 3000, "ja": 1000, "zh": 1000}
# Whisper writes Hindi in one of two scripts; of Chinese as well, unless it has seen which.
PROMPTS = {"hi": "नमस्ते, आप कैसे हैं?", "zh": "以下是普通话的句子。"}


class Recogniser:
    def __init__(self, directory: str) -> None:
        whisper = importlib.import_module("faster_whisper")
        self._model: Any = whisper.WhisperModel(directory, device="cpu", cpu_threads=2)
        version = importlib.metadata.version("faster-whisper")
        self.name = f"Whisper base (multilingual), faster-whisper {version}, beam 5"

    def write_down(self, samples: NDArray[np.int16], language: str) -> str:
        length = len(samples) * WHISPER_RATE // SAMPLE_RATE
        spectrum = np.fft.rfft(samples / 32768)[: length // 2 + 1]
        audio = np.fft.irfft(spectrum, length) * (WHISPER_RATE / SAMPLE_RATE)
        segments, _ = self._model.transcribe(
            audio.astype(np.float32),
            language=language[:2],
            beam_size=5,
            initial_prompt=PROMPTS.get(language),
        )
        return " ".join(segment.text.strip() for segment in segments)


async def remake_sentence(
    client: Client, front: FrontEnd, recogniser: Recogniser, sentence: Sentence
) -> None:
    spoken = await speak(client, sentence.text, voice=sentence.voice, speed=sentence.speed)
    await asyncio.to_thread(describe, sentence, spoken, front, recogniser)
    say(f"{sentence.name}: {sentence.word_error_rate} {sentence.transcript!r}")


def describe(sentence: Sentence, spoken: Spoken, front: FrontEnd, recogniser: Recogniser) -> None:
    language = voice_language(parse_voice(sentence.voice)[0][0])
    sentence.transcript = recogniser.write_down(spoken.samples, language)
    wanted = sentence.reference or sentence.text
    sentence.word_error_rate = round(word_error_rate(wanted, sentence.transcript), 3)
    sentence.phonemes = phonemes_of(front, sentence.text, language)
    sentence.seconds = round(spoken.seconds, 3)
    sentence.fingerprint = pack(fingerprint(spoken.samples))


async def remake_tail(client: Client, recogniser: Recogniser, language: str) -> Tail:
    text = paragraph(TAIL_CHARACTERS[language], language)
    spoken = await speak(client, text, voice=VOICES[language])
    tail = spoken.samples[-TAIL_SECONDS * SAMPLE_RATE :]
    heard = await asyncio.to_thread(recogniser.write_down, tail, language)
    say(f"{language}, {len(text)} characters, {spoken.seconds:.1f} s: {heard!r} ({LAST[language]})")
    return Tail(language, VOICES[language], len(text), heard)


async def remake(record: Record, recogniser: Recogniser, names: list[str], url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries' own, while they are imported
        front = FrontEnd.load()
    async with connect(url) as client:
        for sentence in record.sentences:
            if not names or sentence.name in names:
                await remake_sentence(client, front, recogniser, sentence)
                save(record)
        if "tails" in names:
            spoken = [code for code in LAST if any(code in one for one in front.languages())]
            record.tails = []
            for code in spoken:
                record.tails.append(await remake_tail(client, recogniser, code))
                save(record)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(directory: str, *names: str) -> None:
    record, recogniser = load(), Recogniser(directory)
    record.made, record.recogniser = f"{datetime.now(UTC):%Y-%m-%d}", recogniser.name
    record.engine = ENGINE
    with live_server(speech=ENGINE) as server:
        asyncio.run(remake(record, recogniser, list(names), server.ws_url))


if __name__ == "__main__":
    main(*sys.argv[1:])
