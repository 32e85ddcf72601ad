"""espeak-ng by ctypes: text of one of its voices to IPA.

The shared library and its data come in the package espeakng-loader and are loaded as they are (the
phonemizer package would bring a dozen others for this one call). espeak keeps everything in global
variables: one instance per process, used by one thread; changing the voice costs about a
millisecond. espeak-ng itself is GPL-3.0-or-later. Does NOT know the model's symbols.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from functools import cache

_SYNCHRONOUS = 2  # no audio device is opened
_UTF8 = 1
_IPA_WITH_TIES = 0x02 | 0x80 | (ord("\u0361") << 8)  # espeak_TextToPhonemes in speak_lib.h
# It crashes the process on some text (seen: a Cyrillic letter in the Hindi voice, an apostrophe
# before a hyphen, a Devanagari digit in the Spanish one). So a voice gets the letters of its own
# script and ASCII, and single apostrophes and hyphens inside words; that survived fuzzing.
_LATIN = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f"
_DEVANAGARI = "A-Za-z\u0900-\u0963\u0970-\u097f"


def _unsafe(letters: str) -> re.Pattern[str]:
    return re.compile(f"[^{letters}0-9' -]+|(?<![{letters}])['-]+|['-]+(?![{letters}])|['-]{{2,}}")


_RARE = frozenset(map(chr, (*range(0x180, 0x250), *range(0x1E00, 0x1F00))))
_UNSAFE = {"inc/hi": _unsafe(_DEVANAGARI)}
_UNSAFE_ELSEWHERE = _unsafe(_LATIN)
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

        `voice`: the file of one of its voices (`gmw/en-US`). Of `text` only letters of its script
        and ASCII ones, digits, apostrophes and hyphens are read.
        """
        self._use(voice)
        plain = _UNSAFE.get(voice, _UNSAFE_ELSEWHERE).sub(" ", _without_rare_accents(text))
        left = ctypes.c_char_p(plain.encode())
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


def _without_rare_accents(text: str) -> str:
    """Nguyễn as Nguyen: letters no voice here has rules for, without what is on them."""
    return "".join(
        unicodedata.normalize("NFD", char)[0] if char in _RARE else char for char in text
    )


@cache
def espeak() -> EspeakLibrary:
    """The process's one library. Raises ImportError, OSError."""
    return EspeakLibrary()
