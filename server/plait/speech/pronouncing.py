"""What every language's pronouncer satisfies.

`pronounce` takes text as it is to be said (normalised: words and punctuation, single spaces) and
tells the sounds of its characters, in order. It never raises for any text; what it cannot say it
leaves out.
"""

from __future__ import annotations

from typing import Protocol

from plait.speech.alignment import Sound


class Pronouncer(Protocol):
    def pronounce(self, text: str) -> list[Sound]: ...
