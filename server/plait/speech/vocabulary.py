"""The symbols Kokoro-82M reads and their ids: 114 of a table of 178.

Facts of the model, from `config.json` of hexgrad/Kokoro-82M (Apache-2.0). Id 0 is the padding that
goes before and after every utterance; ids without a symbol were never trained. Does NOT know where
phonemes come from.
"""

# ruff: noqa: RUF001 -- writing systems are what this module is about
from __future__ import annotations

TABLE_SIZE = 178
PADDING = 0

# Runs of neighbouring ids: the first one, and the symbols from there on.
_RUNS = (
    (1, ";:,.!?"),
    (9, '—…"()“” \u0303ʣʥʦʨᵝ\uab67AI'),
    (31, "O"),
    (33, "Q"),
    (35, "ST"),
    (39, "W"),
    (41, "Yᵊabcdef"),
    (50, "hijklmnopqrstuvwxyzɑɐɒæ"),
    (75, "βɔɕç"),
    (80, "ɖðʤə"),
    (85, "ɚɛɜ"),
    (90, "ɟ"),
    (92, "ɡ"),
    (99, "ɥ"),
    (101, "ɨɪʝ"),
    (110, "ɯɰŋɳɲɴø"),
    (118, "ɸθœ"),
    (123, "ɹ"),
    (125, "ɾɻ"),
    (128, "ʁɽʂʃʈʧ"),
    (135, "ʊʋ"),
    (138, "ʌɣɤ"),
    (142, "χʎ"),
    (147, "ʒʔ"),
    (156, "ˈˌː"),
    (162, "ʰ"),
    (164, "ʲ"),
    (169, "↓"),
    (171, "→↗↘"),
    (177, "ᵻ"),
)

SYMBOLS: dict[str, int] = {
    symbol: first + offset for first, run in _RUNS for offset, symbol in enumerate(run)
}


def ids(phonemes: str) -> list[int]:
    """The ids of `phonemes`, without padding. KeyError: a symbol outside the vocabulary."""
    return [SYMBOLS[symbol] for symbol in phonemes]
