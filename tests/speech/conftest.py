"""The English front end, loaded once: its libraries take seconds to import."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from plait.speech.front import FrontEnd
from plait.speech.languages import missing
from plait.speech.segment import Segment

from .peers import read_whole

Say = Callable[..., list[Segment]]


@pytest.fixture(scope="session")
def front() -> FrontEnd:
    if missing("en-us"):
        pytest.skip(f"needs {missing('en-us')}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries' own, while they are imported
        return FrontEnd.load(["en-us"])


@pytest.fixture(scope="session")
def say(front: FrontEnd) -> Say:
    """A whole text in a language -> its segments."""

    def say(text: str, language: str = "en-us") -> list[Segment]:
        if missing(language):
            pytest.skip(f"needs {missing(language)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spoken = front.open(language)
        return read_whole(spoken, text)

    return say
