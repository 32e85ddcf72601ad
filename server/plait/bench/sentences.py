"""What the speech bench says: sentences of 3, 8, 20 and 60 words, never the same twice in a row.

Each length has several sentences and each round takes the next, so that no engine gains from having
seen a shape before. Does NOT know engines.
"""

from __future__ import annotations

from typing import Final

WORDS: Final = (3, 8, 20, 60)

_OPENINGS = ("Good morning, everyone.", "Sure, one moment.", "No, not yet.", "Yes, that works.")
_SHORT = (
    "The weather looks really lovely here this morning.",
    "You can find the keys next to it.",
    "Please remember to bring your passport and ticket.",
    "Nobody knows exactly how the old fire started.",
)
_LONG = (
    "The quick brown fox jumps over the lazy dog while five boxing wizards jump quickly around the"
    " old garden wall.",
    "Scientists have discovered a new species of frog in the rain forest, and want to go back"
    " there next year.",
    "We should probably leave now if we want to catch the last bus, because it never waits for"
    " anybody.",
    "The museum opens at ten in the morning and closes at six in the evening, except on Mondays and"
    " holidays.",
)
_PASSAGES = (
    "When I was a young boy, my father took me into the city to see a marching band, and he told me"
    " that one day I would play in it. I did not believe him then. Years later I remembered his"
    " words, bought a small trumpet, practised every single evening, and played it happily until"
    " winter came to our street.",
    "It was a cold evening in November, the streets were nearly empty, and a thin layer of frost"
    " had already formed on the windows of the old houses along the river. A woman in a long coat"
    " walked slowly across the bridge. She carried a lamp, and she looked down at the dark water"
    " as if she lost something in it.",
)
_BY_WORDS: Final = {3: _OPENINGS, 8: _SHORT, 20: _LONG, 60: _PASSAGES}


def sentence(words: int, number: int) -> str:
    """The `number`-th text of about that many words (one of `WORDS`)."""
    choice = _BY_WORDS[words]
    return choice[number % len(choice)]
