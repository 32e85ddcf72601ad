"""Languages: their names, what each needs, and the refusal that says what to install."""

# ruff: noqa: RUF001 -- phonemes
from __future__ import annotations

import subprocess
import sys

import pytest

from plait.errors import InvalidRequest
from plait.speech import languages
from plait.speech.languages import LANGUAGES, canonical, missing, require
from plait.speech.vocabulary import SYMBOLS, TABLE_SIZE, ids


@pytest.mark.parametrize(
    ("written", "code"),
    [("en", "en-us"), ("EN-GB", "en-gb"), ("pt", "pt-br"), ("pt_BR", "pt-br"), ("zh", "zh")],
)
def test_a_language_has_one_name(written: str, code: str) -> None:
    assert canonical(written) == code


@pytest.mark.parametrize("written", ["", "xx", "en-us\n; rm", "e" * 1000, "\ud800"])
def test_an_unknown_language_is_an_invalid_request(written: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        missing(written)

    assert caught.value.param == "language"


def test_a_language_without_its_libraries_names_what_to_install() -> None:
    lonely = languages.Language("xx", "x", ("no_such_module_anywhere",), "some-package")

    assert languages.missing_of(lonely) == "some-package"
    with pytest.raises(InvalidRequest, match="some-package"):
        languages.require_of(lonely)


def test_a_language_with_the_better_libraries_only_is_spoken() -> None:
    rich = languages.Language("xx", "x", ("no_such_module",), "a", ("json",), "b")

    assert languages.missing_of(rich) is None


def test_asking_what_is_missing_imports_no_library() -> None:
    script = (
        "import sys; from plait.speech import languages, voices, vocabulary\n"
        "[languages.missing(code) for code in languages.LANGUAGES]\n"
        "heavy = {'misaki', 'spacy', 'phonemizer', 'num2words', 'jieba', 'numpy', 'torch'}\n"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_every_language_on_the_wire_is_there() -> None:
    assert list(LANGUAGES) == ["en-us", "en-gb", "es", "fr", "hi", "it", "pt-br", "ja", "zh"]
    assert all(missing(code) or require(code) == code for code in LANGUAGES)


def test_the_vocabulary_is_the_models() -> None:
    assert len(SYMBOLS) == 114
    assert len(set(SYMBOLS.values())) == 114
    assert max(SYMBOLS.values()) < TABLE_SIZE
    assert ids("həlˈO.") == [50, 83, 54, 156, 31, 4]
