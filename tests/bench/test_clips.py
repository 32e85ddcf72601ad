"""The shipped recordings and what is read of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bench.clips import AUDIO, read_clip, shipped_clip
from plait.bench.serving import BenchError
from plait.client.wav import wav


@pytest.mark.parametrize(("name", "seconds", "utterances"), [("jfk", 11.0, 1), ("multi", 42.23, 6)])
def test_shipped_clips_are_16_khz_mono_with_all_that_is_said_in_them(
    name: str, seconds: float, utterances: int
) -> None:
    clip = shipped_clip(name)

    assert (clip.sample_rate, clip.channels) == (16_000, 1)
    assert clip.seconds == pytest.approx(seconds)
    assert len(clip.utterances) == utterances
    moments = [t for said in clip.utterances for t in (said.start, said.end)]
    assert [0, *moments, clip.seconds] == sorted([0, *moments, clip.seconds])


def test_a_reference_may_be_plain_text(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("Hello there.")

    clip = read_clip(AUDIO / "jfk.wav", tmp_path / "said.txt")

    assert (clip.text, clip.utterances) == ("Hello there.", ())


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    (tmp_path / "bad.json").write_text('[["a", 1]]')
    (tmp_path / "good.wav").write_bytes(wav(b"\0\0", 8000))

    with pytest.raises(BenchError, match=r"bad\.wav"):
        read_clip(tmp_path / "bad.wav", AUDIO / "jfk.json")
    with pytest.raises(BenchError, match=r"bad\.json"):
        read_clip(tmp_path / "good.wav", tmp_path / "bad.json")
    (tmp_path / "empty.wav").write_bytes(wav(b"", 8000))
    with pytest.raises(BenchError, match="no samples"):
        read_clip(tmp_path / "empty.wav", AUDIO / "jfk.json")
    with pytest.raises(BenchError, match=r"none\.json"):
        read_clip(tmp_path / "good.wav", tmp_path / "none.json")
