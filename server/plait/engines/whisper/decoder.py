"""whisper.cpp through pywhispercpp's low level: a window of samples in, words with times out.

Greedy, without fallback temperatures, on no more context than the window needs, with a bound on
tokens: a decode costs what its window costs, never a multiple. Text is put together from the
tokens' bytes, as a character may lie in two of them. Not re-entrant; a decoder may be made before
a fork and used after it. Does NOT know streams, silence or segments: it believes every sound to be
speech.
"""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _pywhispercpp as whisper
import numpy as np

from plait.engines.whisper.words import SAMPLE_RATE, Decoded, Floats, Window, Word
from plait.errors import GenerationFailed, ModelLoadFailed
from plait.models.errors import StoreError
from plait.models.whisper.ggml_file import GgmlHeader, check

ENGLISH = "en"
DETECT = "auto"
PUNCTUATION = frozenset(b".,;:!?-\"'")

FRAMES_PER_SECOND = 50  # of the encoder
# What is left of the context after the audio must not be too little, or an utterance comes twice;
# half of that does for interims, at half the cost, and the closing decode mends what it loses.
LEAST_CONTEXT = 384
LEAST_INTERIM_CONTEXT = 192
CONTEXT_GRAIN = 64
LEAD_SECONDS = 0.3  # of silence, where the audio begins in the midst of a word
LEAST_SECONDS = 1.05  # shorter windows get silence added: whisper.cpp refuses them

TOKENS_PER_SECOND = 8  # speech tops out near 6: bounds a repetition loop
SPARE_TOKENS = 16

# How long before its end a word may have begun, where the one before it ended long ago.
ATTACK_SECONDS = 0.25
LETTER_SECONDS = 0.08

# Of (encoder layers, decoder layers): whose attention says when a word was spoken. For models that
# are not listed it is asked of the upper half of the decoder.
ALIGNMENT = {(4, 4): "TINY", (6, 6): "BASE", (32, 32): "LARGE_V2", (32, 4): "LARGE_V3_TURBO"}
MELS_OF_V3 = 128

ABORTED = -6  # what whisper_full returns when its abort callback said so


class Aborted(Exception):
    """The decode ended because `aborted()` said so; nothing of it is kept."""


@dataclass(slots=True)
class _Piece:
    text: bytes
    end: float
    probability: float


class Decoder:
    """One model in memory. `aborted` is asked between steps of the model, from this thread.

    Raises ModelLoadFailed.
    """

    def __init__(
        self, path: str, threads: int = 1, aborted: Callable[[], bool] | None = None
    ) -> None:
        _silence_logs()
        self._context = _load(path)
        self._aborted = aborted
        self.multilingual = bool(whisper.whisper_is_multilingual(self._context))
        self._end_of_text: int = whisper.whisper_token_eot(self._context)
        self._longest_context: int = whisper.whisper_model_n_audio_ctx(self._context)
        self._params = _params(threads)
        if aborted is not None:
            self._params.set_abort_callback(aborted)

    def decode(self, window: Window) -> Decoded:
        """Raises GenerationFailed, and Aborted."""
        seconds = len(window.samples) / SAMPLE_RATE
        lead = LEAD_SECONDS if window.start_seconds == 0 else 0.0
        samples = _padded(window.samples, lead)
        params = self._params
        context = audio_context(len(samples), closing=window.closing)
        params.audio_ctx = min(context, self._longest_context)
        params.max_tokens = SPARE_TOKENS + int(seconds * TOKENS_PER_SECOND)
        language = (window.language or DETECT) if self.multilingual else ENGLISH
        params.language = language
        params.initial_prompt = window.prompt
        if language == DETECT:
            self._set_context(samples, params.audio_ctx)
        code = whisper.whisper_full(self._context, params, samples, len(samples))
        if code == ABORTED and self._aborted is not None:
            raise Aborted
        if code != 0:
            raise GenerationFailed(
                f"The model could not decode {seconds:.1f} s of audio (code {code}). Send it again."
            )
        return Decoded(list(self._words(seconds, lead)), self._language())

    def _set_context(self, samples: Floats, audio_ctx: int) -> None:
        """whisper.cpp tells languages apart on the context of the decode before, and the first
        time on all 30 s of it: a decode that ends before its first step sets it at no cost."""
        params = _params(1)
        params.audio_ctx = audio_ctx
        params.language = ENGLISH
        params.set_encoder_begin_callback(lambda *_: False)
        whisper.whisper_full(self._context, params, samples, len(samples))

    def _language(self) -> str | None:
        if not self.multilingual:
            return None
        name: str = whisper.whisper_lang_str(whisper.whisper_full_lang_id(self._context))
        return name

    def _words(self, seconds: float, lead: float) -> Iterator[Word]:
        before = 0.0
        for piece in self._pieces():
            text = whole_characters(piece.text)
            if not text.strip():
                continue
            end = min(max(before, piece.end - lead), seconds)
            start = max(before, end - ATTACK_SECONDS - LETTER_SECONDS * len(text))
            yield Word(text, start, end, piece.probability)
            before = end

    def _pieces(self) -> list[_Piece]:
        """Tokens joined to words: a token that begins with a space begins one. A word ends where
        its last token does that is not punctuation alone."""
        pieces: list[_Piece] = []
        context = self._context
        for segment in range(whisper.whisper_full_n_segments(context)):
            for index in range(whisper.whisper_full_n_tokens(context, segment)):
                token = whisper.whisper_full_get_token_data(context, segment, index)
                if token.id >= self._end_of_text:
                    continue
                text: bytes = whisper.whisper_token_to_bytes(context, token.id)
                end = float(token.t_dtw if token.t_dtw >= 0 else token.t1) / 100
                if text.startswith(b" ") or not pieces:
                    pieces.append(_Piece(text, end, float(token.p)))
                    continue
                pieces[-1].text += text
                pieces[-1].probability = min(pieces[-1].probability, float(token.p))
                if not PUNCTUATION.issuperset(text):
                    pieces[-1].end = end
        return pieces


def whole_characters(text: bytes) -> str:
    """Without what is left of a character where the bound on tokens cut it."""
    return text.decode("utf-8", "ignore")


def audio_context(samples: int, *, closing: bool) -> int:
    """Encoder frames that cover `samples` with a little room, as few as decode well."""
    least = LEAST_CONTEXT if closing else LEAST_INTERIM_CONTEXT
    frames = samples / SAMPLE_RATE * FRAMES_PER_SECOND
    needed = CONTEXT_GRAIN * math.ceil((frames + CONTEXT_GRAIN) / CONTEXT_GRAIN)
    return max(least, needed)


def _params(threads: int) -> Any:
    params = whisper.whisper_full_default_params(
        whisper.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY
    )
    params.n_threads = threads
    params.print_progress = False
    params.print_realtime = False
    params.print_timestamps = False
    params.no_context = True
    params.suppress_blank = True
    params.single_segment = True  # else what follows a time it guesses is encoded once more
    params.token_timestamps = True
    params.temperature_inc = 0.0  # no second, third … sixth decode of a window that is hard
    return params


def _load(path: str) -> Any:
    try:
        header = check(Path(path))  # whisper.cpp does not: it would crash on it later
    except StoreError as error:
        raise ModelLoadFailed(
            "The Whisper model's weights cannot be read, are damaged, or no ggml file that can be "
            "used; verify or pull the model again."
        ) from error
    context = whisper.whisper_init_from_file_with_params(path, _loading(header))
    if context is None:
        raise ModelLoadFailed("whisper.cpp cannot load the Whisper model; pull the model again.")
    return context


def _loading(header: GgmlHeader) -> Any:
    """With times of words out of the decoder's attention, for which flash attention is given up:
    what whisper.cpp guesses without it is off by a word or more."""
    name = ALIGNMENT.get((header.audio_layers, header.text_layers), "N_TOP_MOST")
    if not header.multilingual and name in {"TINY", "BASE"}:
        name += "_EN"
    if header.mels == MELS_OF_V3 and name == "LARGE_V2":
        name = "LARGE_V3"
    params = whisper.whisper_context_default_params()
    params.flash_attn = False
    params.dtw_token_timestamps = True
    params.dtw_aheads_preset = getattr(whisper, f"WHISPER_AHEADS_{name}")
    params.dtw_n_top = max(1, header.text_layers // 2)
    return params


def _padded(samples: Floats, lead_seconds: float) -> Floats:
    lead = int(lead_seconds * SAMPLE_RATE)
    missing = int(LEAST_SECONDS * SAMPLE_RATE) - lead - len(samples)
    if lead or missing > 0:
        samples = np.pad(samples, (lead, max(0, missing)))
    return np.ascontiguousarray(samples, np.float32)


def _silence_logs() -> None:
    """whisper.cpp talks to stderr; what matters of it comes back as a code."""
    whisper.whisper_log_set(_ignore)
    atexit.register(whisper.whisper_log_set, None)  # else the interpreter dies under its callback


def _ignore(*_: object) -> None:
    return None
