"""Rules for URLs, e-mail addresses, file names, handles and hashtags, in any language's words.

Of a URL the host and the path are said, not the scheme, the query or the fragment: they are for
machines. Letters that are no word (top level domains, file endings) are spelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from plait.speech.rewriting import Rule, rule

_TOP = "com|org|net|edu|gov|info|dev|app|io|ai|co|me|tv|us|uk|de|fr|es|it|br|mx|in|jp|cn|eu|ch|at"
_HOST = rf"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{{0,62}})\.){{1,6}}(?:{_TOP})"
_SPELLED_TOPS = frozenset(
    (
        "edu",
        "io",
        "ai",
        "co",
        "tv",
        "us",
        "uk",
        "de",
        "fr",
        "es",
        "it",
        "br",
        "mx",
        "in",
        "jp",
        "cn",
        "eu",
        "ch",
        "at",
    )
)
_ENDINGS = {
    "txt": "text",
    "json": "Jason",
    "jpeg": "J peg",
    "toml": "tommel",
    "yaml": "yammel",
    "java": "java",
    "bin": "bin",
    "zip": "zip",
    "log": "log",
    "conf": "conf",
    "bash": "bash",
    "rust": "rust",
    "lock": "lock",
}
_FILE_ENDINGS = (
    "txt|json|jpe?g|toml|ya?ml|java|bin|zip|log|conf|py|js|ts|tsx|jsx|md|csv|html?|css|pdf|png|gif"
    "|svg|mp[34]|wav|exe|dll|so|sh|rs|go|cpp|hpp|xml|docx?|xlsx?|pptx?|ini|cfg|lock|gguf|onnx|sql"
    "|gz|tar|bak|env|h|c|rb|php|ipynb|bat|ps1|ogg|flac|webp|iso|deb|rpm|whl"
)


class AddressWords(NamedTuple):
    dot: str
    at: str
    slash: str
    dash: str
    underscore: str
    hashtag: str


WORDS = {
    "en": AddressWords("dot", "at", "slash", "dash", "underscore", "hashtag"),
    "es": AddressWords("punto", "arroba", "barra", "guion", "guion bajo", "etiqueta"),
    "fr": AddressWords("point", "arobase", "slash", "tiret", "tiret bas", "mot-dièse"),
    "hi": AddressWords("डॉट", "ऐट", "स्लैश", "डैश", "अंडरस्कोर", "हैशटैग"),
    "it": AddressWords("punto", "chiocciola", "barra", "trattino", "trattino basso", "hashtag"),
    "pt": AddressWords("ponto", "arroba", "barra", "hífen", "sublinhado", "hashtag"),
    "ja": AddressWords(
        "ドット", "アット", "スラッシュ", "ハイフン", "アンダーバー", "ハッシュタグ"
    ),
    "zh": AddressWords("点", "艾特", "斜杠", "横杠", "下划线", "话题"),
}


def rules(language: str, label: Callable[[str], str]) -> list[Rule]:
    """`language`: a name of `languages`; `label` says digits that are part of a name."""
    words = WORDS[language.partition("-")[0]]
    say = _Reader(words, label)
    return [
        rule(r"(?:mailto:)?[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,6}[a-zA-Z]{2,24}\b", say.mail),
        rule(r"\b(?:https?|ftp|wss?)://[^\s<>\"'“”\])]{1,2000}", say.url),
        rule(r"\bwww\.[^\s<>\"'“”\])]{2,2000}", say.url),
        rule(rf"(?<![\w@./-]){_HOST}(?:/[^\s<>\"'“”\])]{{0,2000}})?(?![\w@])", say.url),
        rule(rf"(?<![\w@.])[\w./~-]{{0,200}}[\w-]\.(?:{_FILE_ENDINGS})(?![\w.])", say.file),
        rule(r"(?<![\w.:/])(?:~|\.{1,2})?(?:/[\w.-]{2,64}){2,12}/?(?![\w/])", say.path),
        rule(r"(?<![\w@])@(?=[A-Za-z_]\w)", f" {words.at} "),
        rule(r"(?<![\w#&])\#(?=\w{0,20}[A-Za-z])", f" {words.hashtag} "),
        rule(r"(?<=\w)_+(?=\w)", " "),
        rule(r"(?<=\w)\(\)(?!\w)", ""),
    ]


class _Reader:
    def __init__(self, words: AddressWords, number: Callable[[str], str]) -> None:
        self._words = words
        self._number = number

    def mail(self, match: re.Match[str]) -> str:
        name, _, host = match[0].removeprefix("mailto:").partition("@")
        return f" {self._label(name)} {self._words.at} {self._host(host)} "

    def url(self, match: re.Match[str]) -> str:
        whole = match[0].rstrip(".,;:!?…*_~")
        address = whole.partition("://")[2] or whole
        address = re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/")
        host, *path = address.split("/")
        host = host.partition("@")[2] or host
        host, _, port = host.removeprefix("www.").partition(":")
        said = self._host(host) + (f" {self._label(port)}" if port else "")
        return f" {said}{self._path(path)} {match[0][len(whole) :]}"

    def file(self, match: re.Match[str]) -> str:
        *folders, name = match[0].split("/")
        stem, _, ending = name.rpartition(".")
        spoken = _ENDINGS.get(ending.lower(), " ".join(ending.upper()))
        folder = self._path([one for one in folders if one.strip(".~")]).strip()
        said = f"{self._label(stem)} {self._words.dot} {spoken}"
        return f" {folder} {self._words.slash} {said} " if folder else f" {said} "

    def path(self, match: re.Match[str]) -> str:
        return f" {self._path(match[0].strip('/~.').split('/'))} "

    def _path(self, parts: list[str]) -> str:
        said = [self._label(part, dash=" ") for part in parts if part]
        return "".join(f" {self._words.slash} {part}" for part in said)

    def _host(self, host: str) -> str:
        *labels, top = host.split(".")
        top = " ".join(top.upper()) if top in _SPELLED_TOPS else self._label(top)
        return f" {self._words.dot} ".join([self._label(label) for label in labels] + [top])

    def _label(self, label: str, dash: str | None = None) -> str:
        words = self._words
        said = label.replace("-", f" {words.dash if dash is None else dash} ")
        said = said.replace("_", f" {words.underscore} " if dash is None else " ")
        said = said.replace(".", f" {words.dot} ").replace("+", " plus ").replace("%20", " ")
        said = re.sub(r"\d+", lambda digits: f" {self._number(digits[0])} ", said)
        return " ".join(_spelled_if_no_word(part) for part in said.split())


def _spelled_if_no_word(part: str) -> str:
    """`bbc` is spelled, `example` is not."""
    spelled = (
        part.isascii() and part.isalpha() and not re.search(r"[aeiouyAEIOUY].|.[aeiouy]", part)
    )
    return " ".join(part.upper()) if spelled and len(part) <= 5 else part
