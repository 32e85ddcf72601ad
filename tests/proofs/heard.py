"""Sentences that a speech recogniser once wrote down, with what they sounded like then.

The file (tests/data/speech/sentences.json) holds the plan and the findings; `remake_speech.py`
fills the findings in. Does NOT know servers.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict, dataclass, field
from pathlib import Path

from plait.bench.accuracy import edit_distance
from tests.proofs.fingerprint import Fingerprint, unpack

# A sound is the same below this: see test_speech_heard.py for what is measured on both sides.
SAME_DB = 3.0

FILE = Path(__file__).parents[1] / "data" / "speech" / "sentences.json"


@dataclass
class Sentence:
    """`reference`: the text as a recogniser would write it, where it is not the text itself."""

    name: str
    text: str
    voice: str = "af_heart"
    speed: float = 1.0
    reference: str = ""
    transcript: str = ""
    word_error_rate: float = 1.0
    phonemes: list[str] = field(default_factory=list)  # segment by segment
    seconds: float = 0.0
    fingerprint: str = ""

    @property
    def sound(self) -> Fingerprint:
        return unpack(self.fingerprint)


@dataclass
class Tail:
    """The end of a long paragraph in one language, by the recogniser."""

    language: str
    voice: str
    characters: int
    transcript: str


@dataclass
class Record:
    """`made`: the day, `recogniser`: which one, `engine`: what spoke."""

    made: str
    recogniser: str
    engine: str
    sentences: list[Sentence]
    tails: list[Tail]


def load() -> Record:
    raw = json.loads(FILE.read_text(encoding="utf-8"))
    raw["sentences"] = [Sentence(**one) for one in raw["sentences"]]
    raw["tails"] = [Tail(**one) for one in raw["tails"]]
    return Record(**raw)


def save(record: Record) -> None:
    text = json.dumps(asdict(record), ensure_ascii=False, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")


def words(text: str) -> list[str]:
    """Lower case, without punctuation and accents of spelling that recognisers vary in."""
    flat = unicodedata.normalize("NFKC", text.lower()).replace("\u2019", "'")
    flat = re.sub(r"(?<=\d)[,.](?=\d{3}\b)", "", flat)
    return re.findall(r"[\w$€£'@]+(?:[.:]\d+)?", flat.replace("-", " "))


def word_error_rate(reference: str, transcript: str) -> float:
    """Words to insert, delete or replace, per word of the reference."""
    wanted = words(reference)
    return edit_distance(wanted, words(transcript)) / len(wanted)
