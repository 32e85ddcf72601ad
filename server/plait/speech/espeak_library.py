"""espeak-ng by ctypes: text of one of its voices to IPA.

The shared library and its data come in the package espeakng-loader and are loaded as they are (the
phonemizer package would bring a dozen others for this one call). espeak keeps everything in global
variables: one instance per process, used by one thread; changing the voice costs about a
millisecond. espeak-ng itself is GPL-3.0-or-later. Does NOT know the model's symbols.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache

_SYNCHRONOUS = 2  # no audio device is opened
_UTF8 = 1
_IPA_WITH_TIES = 0x02 | 0x80 | (ord("\u0361") << 8)  # espeak_TextToPhonemes in speak_lib.h
_SWITCH = re.compile(r"\([^()]*\)")  # "(en)": a word in another language begins


class EspeakLibrary:
    """Use `espeak()`, not this: the library can be initialised once. Raises OSError."""

    def __init__(self) -> None:
        import espeakng_loader

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        data = espeakng_loader.get_data_path().encode()
        if self._library.espeak_Initialize(_SYNCHRONOUS, 0, data, 0) <= 0:
            raise OSError("espeak-ng could not be initialised")
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._voice = ""

    def ipa(self, text: str, voice: str) -> str:
        """Words separated by spaces, with stress; `^` ties the two halves of one phoneme.

        `voice`: the file of one of its voices (`gmw/en-US`). `text` without punctuation, or its
        pauses are lost.
        """
        self._use(voice)
        left = ctypes.c_char_p(text.replace("\0", " ").encode("utf-8", "replace"))
        clauses = []
        while left.value:
            said = self._library.espeak_TextToPhonemes(ctypes.byref(left), _UTF8, _IPA_WITH_TIES)
            clauses.append((said or b"").decode("utf-8", "replace"))
        ipa = _SWITCH.sub("", " ".join(clauses)).replace("\u0361", "^")
        return " ".join(ipa.split())

    def _use(self, voice: str) -> None:
        if voice == self._voice:
            return
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise OSError(f"espeak-ng has no voice {voice}")
        self._voice = voice


@cache
def espeak() -> EspeakLibrary:
    """The process's one library. Raises ImportError, OSError."""
    return EspeakLibrary()
