"""One configured model as a client may ask for it: who serves it, its voices, its languages.

The allow-list for names inside params, checked before any work is done: a voice that is not here
reaches no disk. What a client left out is filled in, so that the worker has no defaults of its own
to disagree with. Does NOT know how a language is pronounced.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from plait.errors import InvalidRequest, VoiceNotFound
from plait.scheduling.scheduler import Scheduler
from plait.speech.languages import canonical
from plait.speech.voices import parse_voice, voice_language
from plait.wire.messages import Params, SynthesizeParams, TranscribeParams

NAMED_LANGUAGES = 12  # in a refusal; `welcome` has them all


@dataclass(frozen=True, slots=True)
class Offer:
    """`voices`: their names, the first one is the default; empty where a method has none.

    `languages`: what this server can pronounce, or this model understand, by the wire's names.
    """

    scheduler: Scheduler
    voices: Sequence[str] = ()
    languages: Collection[str] = ()

    def complete(self, params: Params) -> Params:
        """`params` with voice and language filled in; of a transcription, whose language may be
        left to the model, with its name as the model knows it.

        Raises VoiceNotFound (data: voices) and InvalidRequest (param language).
        """
        if isinstance(params, TranscribeParams):
            return self._complete_listening(params)
        if not isinstance(params, SynthesizeParams):
            return params
        if not self.voices:
            raise VoiceNotFound(
                "voice: no voice that this server can pronounce is installed.",
                param="voice",
                data={"voices": []},
            )
        voice = self.voices[0] if params.voice is None else params.voice
        language = self._language_of(voice)
        if params.language is not None:
            language = canonical(params.language)
        if language not in self.languages:
            raise InvalidRequest(
                f"language: this server has no pronunciation for {language}. Use one of: "
                f"{', '.join(self.languages)}.",
                param="language",
            )
        return msgspec.structs.replace(params, voice=voice, language=language)

    def _complete_listening(self, params: TranscribeParams) -> TranscribeParams:
        if params.language is None:
            return params
        asked = params.language.strip().lower().replace("_", "-")
        for language in (asked, asked.partition("-")[0]):
            if language in self.languages:
                return msgspec.structs.replace(params, language=language)
        named = list(self.languages)[:NAMED_LANGUAGES]
        more = len(self.languages) - len(named)
        raise InvalidRequest(
            "language: this model does not know it. Leave it out, or use one of: "
            f"{', '.join(named)}{f' and {more} more' if more else ''}.",
            param="language",
        )

    def _language_of(self, voice: str) -> str:
        """Of the (first) voice. Raises VoiceNotFound when it, or one of a blend, is not here."""
        voices = list(self.voices)
        try:
            names = [name for name, _ in parse_voice(voice)]
        except VoiceNotFound as error:
            raise VoiceNotFound(error.message, param="voice", data={"voices": voices}) from error
        for name in names:
            if name not in voices:
                raise VoiceNotFound(
                    f"voice: there is no voice {name} here. Use one of the {len(voices)} in"
                    " data.voices, or a blend of them.",
                    param="voice",
                    data={"voices": voices},
                )
        return voice_language(names[0])
